"""A host without an agent: at a terminal cas offers to put one there, elsewhere it says how."""

import fcntl
import json
import os
import pty
import subprocess
import sys
import termios
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cas.errors import TransportError
from cas.plan_load import load_plan
from cli.pulling import Order, may_get_agent
from tests.bootstrap.test_bootstrap import ROOT, Place, place
from tests.cli.test_terminal import CONTROL

__all__ = ["place"]  # the fixture

SECONDS = 180
QUESTION = "there is no agent on npu; put one there now? [y/N] "
HINT = "`cas bootstrap npu` puts one on this host"


def _answered(host: Place, answer: str, *words: str) -> tuple[int, str]:
    """The exit code of `cas` on a terminal where its question is answered, and what it wrote."""
    ours, theirs = pty.openpty()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CAS_", "XDG_"))}
    with subprocess.Popen(
        [sys.executable, "-m", "cli", *words], cwd=host.path,
        env={**env, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100"},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        # So that Ctrl-C is a signal.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call of C
    ) as process:  # fmt: skip
        os.close(theirs)
        hangs = threading.Timer(SECONDS, process.kill)
        hangs.start()
        written = bytearray()
        try:
            while data := os.read(ours, 65536):
                asked = QUESTION.encode() in written
                written += data
                if not asked and QUESTION.encode() in written:
                    os.write(ours, answer.encode())
        except OSError:  # Linux says so at the end of a terminal
            pass
        os.close(ours)
        code = process.wait()
        hangs.cancel()
    return code, CONTROL.sub("", written.decode())


def test_yes_puts_one_there_and_the_sync_goes_on(place: Place) -> None:
    code, written = _answered(place, "y\n", "sync")
    assert 0 == code, written
    before, *after = written.split(QUESTION)
    assert (1, False) == (len(after), "unfinished" in before)
    assert "the agent is in " in written
    assert "complete" in written.rpartition("the agent is in ")[2]
    assert place.agent.is_dir()
    again = _answered(place, "", "sync")
    assert (0, False) == (again[0], QUESTION in again[1])


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"], ids=["no", "nothing", "end"])
def test_anything_else_leaves_the_host_as_it_is(place: Place, answer: str) -> None:
    code, written = _answered(place, answer, "scan")
    assert (1, True, True) == (code, QUESTION in written, HINT in written)
    assert not place.agent.exists()


def test_an_interrupt_at_the_question_ends_the_command(place: Place) -> None:
    code, written = _answered(place, "\x03", "sync")
    assert (True, False) == (code != 0, place.agent.exists())
    assert "Traceback" not in written


def test_nobody_is_asked_who_could_not_answer(place: Place) -> None:
    code, out, talk = place.cas("sync")
    assert (1, True, False) == (code, HINT in talk, QUESTION in out + talk)
    code, written = _answered(place, "y\n", "sync", "--json")
    assert (1, True, False) == (code, HINT in written, QUESTION in written)
    assert not place.agent.exists()


def test_with_the_option_nobody_is_asked_and_there_is_one_summary(place: Place) -> None:
    code, out, talk = place.cas("sync", "--bootstrap", "--json")
    assert 0 == code, talk
    assert (False, True) == (QUESTION in talk, "the agent is in " in talk)
    [summary] = [e for e in map(json.loads, out.splitlines()) if e["event"] == "summary"]
    assert (0, True) == (summary["exit"], summary["tiers"][0]["complete"])


def test_only_a_source_of_the_plan_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        'store = "s"\n[source.npu]\nhost = "h"\n'
        '[[tier]]\nname = "t"\nsource = "npu"\npaths = ["/x"]\n'
    )
    plan = load_plan(str(path))
    said = "the agent did not start: there is no cas in the PATH: `cas bootstrap {}` puts one on "
    here, elsewhere = (f"{said.format(name)}this host" for name in ("npu", "other"))
    order = Order((), None, None, dry_run=False, as_json=True, bootstraps=True)
    assert may_get_agent(plan, order, TransportError(here)) is plan.sources["npu"]
    for error in (TransportError(elsewhere), OSError(here), None):
        assert may_get_agent(plan, order, error) is None
    for other in (replace(order, bootstraps=False), replace(order, placed=frozenset({"npu"}))):
        assert may_get_agent(plan, other, TransportError(here)) is None
