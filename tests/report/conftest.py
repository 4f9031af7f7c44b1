"""Facts with everything that a name may be, and a browser for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.report.facts import (
    Facts,
    FileFacts,
    Flow,
    Measures,
    OriginFacts,
    PackedFacts,
    PackedReason,
    Parts,
    Point,
    RunFacts,
    TierFacts,
)
from cas.report.page import page
from cli.reporting import WORDS, pairs
from tests.report.browser import Browser, browsing

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg/onload=alert(1)>'",
    "<a href='javascript:alert(1)'>x</a>",
    "$\\frac{1}{2$ %{x} &lt;b&gt;",
    "line\u2028end\u2029\u202etxt.exe",
    "<!--<script>",
    "2026-11-30",
    "2026-11-30",
    "日本語 größe",
)
LONG = b"/".join([b"<b>" * 80] * 17) + b"/latin-\xe4.tar.gz"  # 4 kB


def made_facts(count: int) -> Facts:
    """Facts of so many tiers, all of whose numbers differ."""
    tiers = [_tier(number) for number in range(count)]
    matrix = [
        [1000 * (1 + min(a, b)) + max(a, b) if (a + b) % 3 or a == b else 0 for b in range(count)]
        for a in range(count)
    ]
    origins = [OriginFacts(tier.name, n == 1, 7, 999 + n, 99 + n) for n, tier in enumerate(tiers)]
    flows = [
        Flow(a if a != 2 else None, b, 100_000 * (a + 1) + b)
        for b in range(count) for a in range(b + 1) if (a + b) % 2 == 0
    ]  # fmt: skip
    files = [FileFacts(n % count, LONG + b"%d" % n, 5000 - n, 9000 + n, 77 + n, n)
             for n in range(9 if count else 0)]  # fmt: skip
    packed = [PackedFacts(n % count, LONG, 4000 - n, HOSTILE[n]) for n in range(4 if count else 0)]
    reasons = [PackedReason(text, 3 + n, 123_456 + n) for n, text in enumerate(HOSTILE[:4])]
    return Facts(tiers, Measures(90_000, 200_000, 50_000, 43_000, 12_345, Parts(40_000, 7000)),
                 matrix, origins, flows, files, packed, 12 if count else 0, reasons,
                 (10, 2000, 0), (1, 2, 3), [HOSTILE[0]])  # fmt: skip


def _tier(number: int) -> TierFacts:
    size = 10_000_000 + 12_345 * number
    parts = Parts(size // 4, size // 8, number, 0, size // 16)
    measures = Measures(size, 3 * size, size // 2, size // 4 + 17, size // 9, parts)
    name = HOSTILE[number % len(HOSTILE)]
    return TierFacts(name, 1, True, 5 + number, 6, 100 + number, 200 + number, measures)


def made_runs(count: int) -> list[RunFacts]:
    """Runs, every second of which recorded its course."""
    points = [Point(n * 10.0, 50_000 * n * n, 20_000 * n * n, 1 + n % 4) for n in range(30)]
    return [
        RunFacts(bytes([n] * 16), 1_700_000_000_000 + n * 10**7, HOSTILE[n % 3], "exit 0",
                 290.0 + n, 42_050_000 + n, 16_820_000, 1000 + n, 4 if n else None,
                 HOSTILE[:2], points if n % 2 else [])
        for n in range(count)
    ]  # fmt: skip


def written(path: Path, facts: Facts, runs: list[RunFacts]) -> Path:
    """Their page."""
    text = page(facts, runs, pairs(facts), WORDS, where=f"/srv/{HOSTILE[0]}", made_ms=10**12)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One that has said nothing yet."""
    os.environ.pop("DISPLAY", None)
    with browsing() as found:
        yield found


@pytest.fixture
def quiet(browser: Browser) -> Iterator[Browser]:
    """The same, which must say nothing: no error, no blocked script, no request."""
    browser.said.clear()
    yield browser
    assert [] == browser.said
