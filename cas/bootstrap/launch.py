"""How a host's agent is started where the plan does not say: the `cas` in the PATH, or else the one
that `cas bootstrap` has put there.

One line for a POSIX shell, with no line break (see `cas.transport.command`), so that words can be
put behind it: they go to the agent. It looks where `probe.sh` looks, in the same order. Some of
these places anybody can write to, so what counts is only what belongs to us, all the way down.
"""

from __future__ import annotations

import shlex

from cas import __version__

_FIND = (
    'command -v cas >/dev/null 2>&1 && exec cas serve "$@"; '
    "u=$(id -u); "
    'for d in "${{XDG_CACHE_HOME:-$HOME/.cache}}/cas" "$HOME/.cache/cas" "/var/tmp/cas-$u" '
    '"${{TMPDIR:-/tmp}}/cas-$u" "/tmp/cas-$u" "/dev/shm/cas-$u"; do '
    'a=$d/agent/{launcher}; [ -O "$d" ] && [ -O "$d/agent" ] && [ -f "$a" ] && [ -O "$a" ] && '
    'exec sh "$a" serve "$@"; done; '
    "echo {complaint} >&2; exit 127"
)


def launcher_name() -> str:
    """The file in `agent/` that starts this version there."""
    return f"cas-{__version__}"


def find_agent(source: str) -> tuple[str, ...]:
    """The command that starts whatever agent there is; `source` is how the user calls the host."""
    script = _FIND.format(launcher=launcher_name(), complaint=shlex.quote(complaint(source)))
    return ("sh", "-c", script, "cas")


def complaint(source: str) -> str:
    """What `find_agent` says there where it finds none."""
    return f"there is no cas in the PATH: `cas bootstrap {source}` puts one on this host"


def start_launcher(path: str) -> tuple[str, ...]:
    """The command that starts the agent by its launcher."""
    return ("sh", path, "serve")
