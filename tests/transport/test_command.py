"""One command line for all login shells."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.errors import UsageError
from cas.transport.command import remote_command

SHELLS = ["sh", "bash", "dash", "ksh", "zsh", "fish", "tcsh", "csh", "busybox"]
SHOW = [sys.executable, "-S", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]
PRINTABLE = [chr(code) for code in range(1, 127) if chr(code) not in "\n\r"]
AWKWARD = [
    *PRINTABLE,
    *(f"a{char}b" for char in PRINTABLE),
    *(f"{char}{char}" for char in PRINTABLE),
    *(f"{one}{other}" for one in "'\\!\"$`" for other in "'\\!\"$`"),
    "",
    " ",
    "two words",
    "-n",
    "~root",
    "$HOME",
    "${HOME}",
    "$(id)",
    "`id`",
    "{a,b}",
    "[a-z]*",
    "a'b'\\''c",
    "\\\\n\\t",
    "!!:s/a/b",
    "%1",
    "^a^b",
    "=ls",
    "é字🙂",
]


def through(shell: str, argv: list[str]) -> bytes:
    """What the command says when sshd hands it to such a login shell."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is missing")
    start = [path, "sh"] if shell == "busybox" else [path]
    ran = subprocess.run(
        [*start, "-c", remote_command(argv)], stdout=subprocess.PIPE, timeout=60, check=True
    )
    return ran.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_arguments_arrive_as_they_are(shell: str) -> None:
    assert AWKWARD == json.loads(through(shell, [*SHOW, *AWKWARD]))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_is_replaced(shell: str) -> None:
    """So that the end of the shell's input, and signals to it, are the command's."""
    script = f"{sys.executable} -S -c 'import os; print(os.getppid())'; echo $$ $PPID"
    below, own, parent = through(shell, ["sh", "-c", script]).split()
    assert own == below
    assert str(os.getpid()).encode() == parent


@given(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), min_size=1))
def test_a_posix_shell_gets_back_any_text(text: str) -> None:
    line = remote_command(["printf", "%s", text])
    assert text == through_sh(line)


def through_sh(line: str) -> str:
    return subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True).stdout.decode()


@pytest.mark.parametrize("argv", [[], [""], ["a\nb"], ["a", "\r"], ["a\0"], ["a", "\udc80"]])
def test_what_cannot_be_written_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        remote_command(argv)
