import importlib
import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner, Result

from cas.errors import CasError, DamageError, StoreMissing
from cli.main import COMMANDS, main
from tests.cli.conftest import Place, command_line

HEAVY = ("asyncio", "asyncssh", "lmdb", "msgpack", "rich", "zstandard", "fastcdc")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), prog_name="cas")


def test_help_lists_every_command_and_loads_none_of_their_work() -> None:
    script = (
        "import json, sys\nfrom click.testing import CliRunner\nfrom cli.main import main\n"
        "result = CliRunner().invoke(main, ['--help'])\n"
        "print(json.dumps([result.exit_code, result.output, sorted(sys.modules)]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    code, text, modules = json.loads(done.stdout)
    assert code == 0
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert [] == [name for name in HEAVY if name in modules]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    said = _run(name, "--help")
    assert said.exit_code == 0
    assert said.stdout.startswith(f"Usage: cas {name}")
    assert "Example" in said.stdout
    assert f"\n    cas {name}" in said.stdout or f'"cas {name}' in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= 80
    assert _run(name, "-h").stdout == said.stdout
    command: click.Command = importlib.import_module(f"cli.commands.{name}").command
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.opts


def test_version() -> None:
    assert _run("--version").stdout.startswith("cas ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["syn"], "cas: there is no command 'syn' (did you mean 'sync'?)\n"),
        (["--bogus"], "cas: no such option '--bogus' (see cas --help)\n"),
        (["sync", "--bogus"], "cas: no such option '--bogus' (see cas sync --help)\n"),
        (["cat"], "cas: missing argument 'TIER[:PATH]...' (see cas cat --help)\n"),
        (["cat", ":x"], "cas: :x: the tier's name is missing (write TIER:PATH)\n"),
    ],
)
def test_a_wrong_command_line_is_exit_2_and_one_line(arguments: list[str], said: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert result.stderr == said
    assert result.stdout == ""


def test_no_command_is_help_and_exit_2() -> None:
    result = _run()
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: cas ")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Makes `cas init` raise what the test puts into the list."""
    errors: list[BaseException] = []

    def fail(**_: object) -> int:
        raise errors[0]

    command = importlib.import_module("cli.commands.init").command
    monkeypatch.setattr(command, "callback", fail)
    return errors


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CasError("what", where="where", advice="advice"), 1, "cas: where: what (advice)\n"),
        (StoreMissing("no store"), 10, "cas: no store\n"),
        (DamageError("bad", where="p"), 12, "cas: p: bad\n"),
        (KeyboardInterrupt("all is kept"), 130, "cas: interrupted; all is kept\n"),
        (KeyboardInterrupt(), 130, "cas: interrupted\n"),
        (PermissionError(13, "Permission denied", "/x"), 1, "cas: /x: Permission denied\n"),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
    ],
)
def test_what_ends_a_command_decides_the_exit_code(
    failing: list[BaseException], error: BaseException, code: int, said: str
) -> None:
    failing.append(error)
    result = _run("init")
    assert result.exit_code == code
    assert result.stderr == said


def test_a_mistake_of_ours_is_a_traceback(failing: list[BaseException]) -> None:
    failing.append(ZeroDivisionError())
    assert isinstance(_run("init").exception, ZeroDivisionError)


def test_a_plan_with_faults_is_exit_2_and_names_each(place: Place) -> None:
    (place.path / "plan.toml").write_text('stor = "x"\n[[tier]]\nname = "a"\n')
    done = place.cas("sync")
    assert done.returncode == 2
    assert done.stderr.startswith(b"cas: ")
    assert b"plan.toml:1" in done.stderr
    assert done.stderr.count(b"plan.toml:") >= 3
    assert b"Traceback" not in done.stderr


def test_no_plan_is_exit_2(place: Place) -> None:
    (place.path / "plan.toml").unlink()
    for command in (["sync"], ["scan"], ["status"], ["ls"]):
        done = place.cas(*command)
        assert done.returncode == 2
        assert b"cas init writes one" in done.stderr


@pytest.mark.parametrize(
    "command", [["ls"], ["status"], ["cat", "first:/x"], ["restore", "first", "--to", "out"]]
)
def test_no_store_is_exit_10(place: Place, command: list[str]) -> None:
    for where in ([], ["--store", "elsewhere"]):
        done = place.cas(*command, *where)
        assert done.returncode == 10
        assert done.stderr.decode().count("\n") == 1
        assert "there is no store here" in done.stderr.decode()
    assert not (place.path / "out").exists()


def test_a_full_disk_behind_standard_output_is_told(synced: Place) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command_line("ls", "first"), cwd=synced.path, env=synced.environment(),
            stdout=full, stderr=subprocess.PIPE,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == b"cas: standard output cannot be written: No space left on device\n"
