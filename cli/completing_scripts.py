"""The functions with which shells ask for completions; see `cli/completing.py` for the answers.

Each hands over the line up to the cursor as it was typed, and reads `type TAB value TAB help`.
"""

from __future__ import annotations

BASH = r"""# cas completion for bash >= 4.4:  source <(cas completion bash)
_cas_completion() {
    local type value rest
    COMPREPLY=()
    while IFS=$'\t' read -r type value rest; do
        case $type in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            part) compopt -o nospace; COMPREPLY+=("$value") ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_LINE=${COMP_LINE:0:COMP_POINT} COMP_WORDBREAKS=$COMP_WORDBREAKS \
        _CAS_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _cas_completion cas
"""

ZSH = r"""#compdef cas
# cas completion for zsh:  source <(cas completion zsh), or as a file _cas in $fpath
_cas_completion() {
    local line type value help
    local -a plain parts fields
    local typed="${(j: :)words[1,CURRENT-1]} ${QIPREFIX}${PREFIX}"
    for line in "${(@f)$(COMP_LINE=$typed _CAS_COMPLETE=zsh_complete $words[1] 2>/dev/null)}"; do
        fields=("${(@ps:\t:)line}")
        type=$fields[1] value=$fields[2] help=$fields[3]
        case $type in
            file) [[ $PREFIX == --*=* ]] && compset -P '*='; _path_files -f ;;
            dir) [[ $PREFIX == --*=* ]] && compset -P '*='; _path_files -/ ;;
            part) parts+=("$value${help:+:$help}") ;;
            plain) plain+=("$value${help:+:$help}") ;;
        esac
    done
    (( $#plain )) && _describe -V cas plain
    (( $#parts )) && _describe -V cas parts -S ''
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _cas_completion "$@"
else
    compdef _cas_completion cas
fi
"""

FISH = r"""# cas completion for fish:  cas completion fish | source
function __cas_completion
    set -l typed (commandline -cp)
    for line in (COMP_LINE=$typed _CAS_COMPLETE=fish_complete cas 2>/dev/null)
        set -l fields (string split \t -- $line)
        switch $fields[1]
            case file
                __fish_complete_path (commandline -ct)
            case dir
                __fish_complete_directories (commandline -ct)
            case plain part
                printf '%s\t%s\n' $fields[2] $fields[3]
        end
    end
end
complete --command cas --no-files --keep-order --arguments '(__cas_completion)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
