"""Completion in the shells themselves: keys are typed at a terminal, and the command that comes of
them is run."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.completing import Typed, in_bash, read_line
from cli.completing_scripts import SCRIPTS
from cli.main import COMMANDS
from tests.cli.conftest import ROOT, SECONDS, Place, make_place

# A `cas` that takes as long as it needs over what it offers, where it else would end in a second.
PATIENT = f"""\
#!/bin/sh
exec {sys.executable} -c '
from cli import completing_paths
from cli.main import main
completing_paths.SECONDS = {SECONDS}
main()' "$@"
"""
BREAKS = " \t\n\"'@><=;|&(:"
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "--interactive"],
}
READY = {
    "bash": "PS1='<ready>'; source <(cas completion bash)",
    "zsh": "PS1='<ready>'; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D; "
    "source <(cas completion zsh)",
}


@pytest.fixture(scope="module")
def shelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Path]:
    """A place that was synced, with an odd name more, and a directory with a `cas` for the PATH."""
    place = make_place(tmp_path_factory.mktemp("shelled"))
    (place.source / "first" / "two words $x").write_text("odd\n")
    assert place.cas("sync").returncode == 0
    program = tmp_path_factory.mktemp("bin") / "cas"
    program.write_text(PATIENT)
    program.chmod(0o755)
    return place, program.parent


def _environment(shelled: tuple[Place, Path]) -> dict[str, str]:
    place, programs = shelled
    return place.environment(
        PATH=f"{programs}:{os.environ['PATH']}", HOME=str(programs), TERM="dumb", LC_ALL="C.UTF-8"
    )


class _Terminal:
    """A shell at a terminal, and what it has shown."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.shown = ""

    def type(self, keys: str, until: str) -> str:
        """Type `keys`; what is shown from then on, once it has `until`."""
        self.shown = ""
        os.write(self._fd, keys.encode())
        end = time.monotonic() + SECONDS
        while not re.search(until, self.shown, re.DOTALL):
            ready, _, _ = select.select([self._fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"{until!r} is not in {self.shown!r}"
            self.shown += os.read(self._fd, 65536).decode(errors="replace")
        return self.shown


@contextmanager
def _shell(name: str, shelled: tuple[Place, Path]) -> Iterator[_Terminal]:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        START[name], cwd=shelled[0].path, env=_environment(shelled),
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    try:
        yield _Terminal(controller)
    finally:
        os.close(controller)
        process.kill()
        process.wait()


def _need(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("cas compl\tb\t| head -c 22\n", "cas completion for b"),
        ("cas cat fir\t{source}/first/two\t\n", "odd"),
        ("cas cat 'first:{source}/first/two\t\n", "odd"),
        ("cas cat first:\tgr\t\n", "grün"),
        ("cas status --js\tsec\t\n", '"tier":"second"'),
        ("cas status bo\t--st\t./stor\t --js\t\n", '"tier":"second"'),
    ],
)
def test_a_command_is_typed_with_tabs_and_runs(
    shell: str, keys: str, said: str, shelled: tuple[Place, Path]
) -> None:
    _need(shell)
    with _shell(shell, shelled) as terminal:
        terminal.type(READY[shell] + "\n", "<ready>.*<ready>")
        terminal.type(keys.format(source=shelled[0].source), re.escape(said))


def test_fish_is_offered_what_fits(shelled: tuple[Place, Path]) -> None:
    _need("fish")

    def offered(line: str) -> list[str]:
        done = subprocess.run(
            ["fish", "--no-config", "-c",
             "cas completion fish | source; complete -C $argv[1]", line],
            cwd=shelled[0].path, env=_environment(shelled), capture_output=True, text=True,
            timeout=SECONDS, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    source = shelled[0].source
    assert [name for name, _ in (line.split("\t") for line in offered("cas "))] == list(COMMANDS)
    assert offered("cas status --pr") == ["--problems\tList everything that was left out, and why."]
    assert offered("cas sync bo") == ["both\tset: first, second"]
    assert offered("cas doctor ") == ["here\tsource: here"]
    assert offered(f"cas cat second:{source}/second/m") == [f"second:{source}/second/more"]
    assert offered("cas restore first --to sto") == ["store/\tDirectory"]
    assert offered("cas ls --store nowhere ") == ["first:\ttier", "second:\ttier"]
    assert offered("cas ls nobody:") == offered("cas nobody ") == []


def test_names_of_many_pages_are_offered_one_directory_at_a_time(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for number in range(40):
        (source / "deep" / f"d{number:02}").mkdir(parents=True)
        for name in range(50):
            (source / "deep" / f"d{number:02}" / f"n{name}").touch()
    (source / "deep" / "z").touch()
    (tmp_path / "plan.toml").write_text(
        f'store = "store"\n[source.here]\n[[tier]]\nname = "t"\nsource = "here"\n'
        f'paths = ["{source}"]\n'
    )
    place = Place(tmp_path, source)
    assert place.cas("sync").returncode == 0

    program = tmp_path / "cas"
    program.write_text(PATIENT)
    program.chmod(0o755)

    def offered(line: str) -> list[str]:
        asked = {"COMP_LINE": line, "_CAS_COMPLETE": "fish_complete"}
        done = subprocess.run(
            [program], cwd=place.path, env=place.environment(**asked), capture_output=True,
            text=True, timeout=SECONDS, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    below = f"t:{source}/deep/"
    expected = [f"part\t{below}d{number:02}/\t" for number in range(40)]
    assert [*expected, f"plain\t{below}z\t"] == offered("cas ls t:")
    assert [f"plain\t{below}d39/n{n}\t" for n in (4, *range(40, 50))] == sorted(
        offered(f"cas ls {below}d39/n4"), key=lambda line: int(line.rpartition("n")[2])
    )


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_what_the_shell_itself_can_read(shell: str) -> None:
    _need(shell)
    done = subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_shell_that_asks_loads_no_store_for_commands_and_options() -> None:
    script = (
        "import os, sys\nfrom cli.main import main\n"
        "os.environ.update(_CAS_COMPLETE='bash_complete', COMP_LINE='cas status --')\n"
        "try:\n main([])\nfinally:\n print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert "plain\t--problems\t\n" in done.stdout
    assert not re.search("'(lmdb|asyncio|rich|tomllib)'", done.stderr)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", Typed((), "")),
        ("cas ", Typed(("cas",), "")),
        ("cas  ls\tx", Typed(("cas", "ls"), "x")),
        ("cas first:/a", Typed(("cas",), "first:/a", 6)),
        ("cas --plan=x", Typed(("cas",), "--plan=x", 7)),
        ("cas a\\ b\\:c", Typed(("cas",), "a b:c", 0)),
        ("cas 'a:b c", Typed(("cas",), "a:b c", 0, "'")),
        ('cas "a\\"b" x:"c d', Typed(("cas", 'a"b'), "x:c d", 2, '"')),
        ("cas '' \\", Typed(("cas", ""), "")),
    ],
)
def test_a_line_is_read_as_the_shell_does(line: str, expected: Typed) -> None:
    assert read_line(line, BREAKS) == expected


@pytest.mark.parametrize("opened", ["", "'", '"', "t:", "t:'", 't:"'])
def test_bash_reads_back_what_is_put_into_its_line(opened: str) -> None:
    _need("bash")
    value = "t:/a b'c\"d$e`f\\g(h)*[i]{j}!k#l~m&n;o|p<q>r?s^t=u"
    typed = read_line(f"cas {opened}", BREAKS)
    line = f"{opened}{in_bash(value, typed)}{typed.quote}"
    if not typed.word:
        value = value if typed.kept == 0 else value[typed.kept :]
    done = subprocess.run(["bash", "-c", f"printf %s {line}"], capture_output=True, text=True)
    assert done.stdout == value
