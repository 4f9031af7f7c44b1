# What `cas bootstrap` wants to know of a host, for any POSIX shell. Reads only; fields of a line are
# apart by tabs. It is read from standard input, so nothing in it may read that. Variables that come
# before it: version (of cas), modules (those of Python that the agent needs), prefixes (where a Python
# may be besides the PATH, patterns allowed).

LC_ALL=C
export LC_ALL
tab=$(printf '\t')

# Older Pythons only say their version. Double quotes only: all of it stands between single ones.
question='import sys
fields = ["python", sys.executable, "%d.%d.%d" % sys.version_info[:3]]
if sys.version_info >= (3, 10):
    import os
    from importlib import machinery, util
    missing = []
    for name in sys.argv[1].split():
        try:
            __import__(name)
        except Exception:
            missing.append(name)
    head = open("/proc/self/exe", "rb").read(20)
    fields += [sys.implementation.name, "%d" % head[4], "%d" % (head[18] + 256 * head[19])]
    try:
        fields += [os.confstr("CS_GNU_LIBC_VERSION") or ""]
    except Exception:
        fields += [""]
    fields += [" ".join(machinery.EXTENSION_SUFFIXES), " ".join(missing)]
print("\t".join(fields))'

pythons() {
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        command -v "$name" 2>/dev/null
    done
    for place in $prefixes; do
        for found in "$place"/python3 "$place"/python3.1[0-9]; do
            [ -x "$found" ] && printf '%s\n' "$found"
        done
    done
}

ask_pythons() {
    seen=$tab
    pythons | while IFS= read -r path; do
        real=$(readlink -f "$path" 2>/dev/null || printf '%s' "$path")
        case $path in [!/]*) continue ;; esac
        case $seen in *"$tab$real$tab"*) continue ;; esac
        seen=$seen$real$tab
        "$path" -I -S -c "$question" "$modules" </dev/null 2>/dev/null ||
            "$path" -E -S -c "$question" "$modules" </dev/null 2>/dev/null
    done
}

# Of a directory that need not be there yet: can it be written, may code be run from it, kB free.
directory() {
    case $1 in /*) ;; *) return ;; esac
    there=$1
    while [ ! -d "$there" ]; do
        there=${there%/*}
        [ -n "$there" ] || there=/
    done
    state=writable
    [ -w "$there" ] && [ -x "$there" ] || state=closed
    set -- "$1" $(df -Pk "$there" 2>/dev/null | tail -n 1)
    mount=
    for mount; do :; done
    options=
    while read -r device at type these rest; do
        [ "$at" = "$mount" ] && options=$these
    done 2>/dev/null </proc/self/mounts
    case ,$options, in
        *,ro,*) state=closed ;;
        *,noexec,*) [ "$state" = closed ] || state=noexec ;;
    esac
    held=
    [ -O "$1" ] && [ -O "$1/agent" ] && [ -f "$1/agent/cas-$version" ] && held=held
    printf 'directory\t%s\t%s\t%s\t%s\n' "$1" "$state" "${5:-}" "$held"
}

directories() {
    [ -n "${XDG_CACHE_HOME:-}" ] && directory "$XDG_CACHE_HOME/cas"
    [ -n "${HOME:-}" ] && directory "$HOME/.cache/cas"
    for place in /var/tmp "${TMPDIR:-/tmp}" /tmp /dev/shm; do
        [ -d "$place" ] && directory "$place/cas-$(id -u)"
    done
}

printf 'cas-probe begin\n'
printf 'system\t%s\n' "$(uname -s)"
printf 'machine\t%s\n' "$(uname -m)"
printf 'installed\t%s\n' "$(command -v cas 2>/dev/null)"
ask_pythons
directories
printf 'cas-probe end\n'
exit 0
