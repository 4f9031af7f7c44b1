"""The page in a real browser: what it shows is what it was given, and nothing that it was given can
do anything there."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest

from cas.report.figures import WIDE, cut
from cas.report.page import embedded
from tests.report.browser import Browser
from tests.report.conftest import HOSTILE, made_facts, made_runs, written

CHARTS = ["waterfall", "measures", "matrix", "flow", "courses", "runs"]
CELLS = """[...document.querySelectorAll('[data-table="%s"] tbody tr')].map(row =>
  [...row.querySelectorAll('[data-value]')].map(cell => Number(cell.dataset.value)))"""


def charts_of(count: int) -> list[str]:
    """The charts for so many tiers, in order."""
    return [name for name in CHARTS if name != "matrix" or count > 1]


DRAWN = "[...document.querySelectorAll('.js-plotly-plot')].map(box => box.dataset.chart)"


@pytest.mark.parametrize("count", [1, 2, 30])
def test_the_tables_have_every_number(quiet: Browser, tmp_path: Path, count: int) -> None:
    facts = made_facts(count)
    quiet.open(written(tmp_path / "r.html", facts, made_runs(3)))
    expected = [
        [m.logical, m.unpacked, m.unique, m.fetched, m.wire, m.parts.others + m.parts.unknown,
         m.parts.adopted, m.parts.missing, tier.exclusive, tier.adds, tier.files]
        for tier in facts.tiers for m in [tier.measures]
    ]  # fmt: skip
    assert expected == quiet.run(CELLS % "tiers")
    assert [[flow.size] for flow in facts.flows] == quiet.run(CELLS % "flows")
    assert [[f.size, f.unpacked, f.repeated, f.shared] for f in facts.files] == quiet.run(
        CELLS % "files"
    )
    assert [[it.count, it.size] for it in facts.reasons] == quiet.run(CELLS % "reasons")
    assert charts_of(count) == quiet.run(DRAWN)


@pytest.mark.parametrize("count", [1, 30])
def test_the_charts_draw_the_numbers(quiet: Browser, tmp_path: Path, count: int) -> None:
    facts = made_facts(count)
    quiet.open(written(tmp_path / "r.html", facts, made_runs(3)))
    traces = quiet.run(
        "document.getElementById('chart-measures').calcdata.map(t => t.map(b => b.s))"
    )
    expected = [
        [getattr(tier.measures, name) for tier in facts.tiers]
        for name in ("logical", "unpacked", "unique", "fetched", "wire")
    ]
    assert expected == traces
    bars = "document.querySelectorAll('#chart-measures .bars .point path').length"
    assert 5 * count == quiet.run(bars)
    links = quiet.run(
        "document.getElementById('chart-flow').calcdata[0][0]._links.map(l => l.value)"
    )
    missing = [tier.measures.parts.missing for tier in facts.tiers]
    assert sorted([flow.size for flow in facts.flows] + missing) == sorted(links)
    assert len(links) == quiet.run("document.querySelectorAll('.sankey-link').length")
    if count == 1:
        assert quiet.run("document.getElementById('chart-matrix')") is None
        return
    shares = quiet.run("document.getElementById('chart-matrix').data[0].z")
    assert shares == [
        [None if a == b else round(facts.percent(a, b), 2) for b in range(count)]
        for a in range(count)
    ]


def test_nothing_hostile_becomes_markup(quiet: Browser, tmp_path: Path) -> None:
    path = written(tmp_path / "r.html", made_facts(10), made_runs(3))
    quiet.open(path)
    assert 0 == quiet.run("document.querySelectorAll('img, a, [onload], [onerror], b b').length")
    names = quiet.run(
        """[...document.querySelectorAll('[data-table="tiers"] tbody td:first-child')]
           .map(cell => cell.textContent)"""
    )
    assert [*HOSTILE[:5], "line\\u2028end\\u2029\\u202etxt.exe", *HOSTILE[6:]] == names
    assert "$\\frac" == names[4][:6]
    ticks = quiet.run("[...document.querySelectorAll('#chart-measures .ytick text')]"
                      ".map(tick => tick.textContent)")  # fmt: skip
    assert [cut(name, WIDE) for name in names] == ticks
    text = path.read_text()
    assert 3 == len(re.findall("</script", text))
    assert not {"\u2028", "\u202e"} & set(text)


def test_a_script_from_elsewhere_does_not_run(browser: Browser, tmp_path: Path) -> None:
    path = written(tmp_path / "r.html", made_facts(2), [])
    text = path.read_text().replace("<h1>", "<script>document.title = 'taken'</script><h1>")
    path.write_text(text)
    browser.open(path)
    assert "taken" != browser.run("document.title")
    assert any("Content Security Policy" in line for line in browser.said)


def test_pointing_at_a_bar_says_its_value(quiet: Browser, tmp_path: Path) -> None:
    facts = made_facts(3)
    quiet.open(written(tmp_path / "r.html", facts, []))
    box = quiet.run("""(() => {
      const it = document.querySelector('#chart-measures .bars .point path');
      it.scrollIntoView({block: 'center'}); const at = it.getBoundingClientRect();
      return [at.x + at.width / 2, at.y + at.height / 2]; })()""")
    quiet.point(*box)
    quiet.point(box[0] + 1, box[1])
    said = quiet.run("""new Promise(done => setTimeout(() => done(
      document.querySelector('#chart-measures .hovertext')?.textContent), 300))""")
    assert f"logical: {facts.tiers[0].measures.logical:,} bytes" in (said or "")


def test_a_view_and_a_scale_can_be_chosen(quiet: Browser, tmp_path: Path) -> None:
    facts = made_facts(3)
    quiet.open(written(tmp_path / "r.html", facts, made_runs(4)))
    logical = "document.getElementById('chart-waterfall').data[0].x[0]"
    assert facts.together.logical == quiet.run(logical)
    quiet.run("""
    const chosen = {waterfall: {value: '2'}, measures: {checked: true}};
    for (const [where, what] of Object.entries(chosen)) {
      const it = document.querySelector(`[data-for="chart-${where}"]`);
      Object.assign(it, what); it.dispatchEvent(new Event('change')); }""")
    assert facts.tiers[1].measures.logical == quiet.run(logical)
    assert "log" == quiet.run("document.getElementById('chart-measures').layout.xaxis.type")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, False), (390, True)])
@pytest.mark.parametrize("count", [1, 30])
def test_it_fits_the_window(
    quiet: Browser, tmp_path: Path, width: int, dark: bool, count: int
) -> None:
    quiet.open(written(tmp_path / "r.html", made_facts(count), made_runs(40)), width, dark=dark)
    assert width == quiet.run("document.documentElement.scrollWidth")
    assert charts_of(count) == quiet.run(DRAWN)
    dim = quiet.run("getComputedStyle(document.body).backgroundColor")
    assert ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)") == dim


def test_charts_are_drawn_anew_for_paper(quiet: Browser, tmp_path: Path) -> None:
    quiet.open(written(tmp_path / "r.html", made_facts(4), made_runs(2)), 1280, dark=True)
    ink = "getComputedStyle(document.querySelector('#chart-measures .ytick text')).fill"
    quiet.run(f"addEventListener('beforeprint', () => {{ window.seen = {ink}; }})")
    quiet.paper(tmp_path / "r.pdf")
    assert "rgb(34, 42, 51)" == quiet.run("window.seen")
    assert "rgb(215, 221, 228)" == quiet.run(ink)
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")


def test_nothing_at_all_is_a_page_too(quiet: Browser, tmp_path: Path) -> None:
    quiet.open(written(tmp_path / "r.html", made_facts(0), []))
    assert [] == quiet.run(DRAWN)
    assert quiet.run("document.querySelectorAll('.empty').length") >= 4


def test_json_in_a_page_ends_nothing() -> None:
    nasty: Any = ["</script>", "<!--", "\u2028", "&lt;", "\udcff"]
    text = embedded(nasty)
    assert text.isascii()
    assert not set("<>&") & set(text)


def png_size(data: bytes) -> tuple[int, int]:
    """The width and height that a PNG says it has."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.parametrize("count", [0, 1, 30, 100])
def test_pictures_are_drawn_without_a_browser(count: int) -> None:
    picture = pytest.importorskip("cas.report.picture")
    pytest.importorskip("matplotlib")
    from cli.reporting import WORDS

    made = picture.pictures(made_facts(count), WORDS)
    assert {"waterfall.png", "matrix.png"} == set(made)
    for data in made.values():
        assert all(300 < side < 6000 for side in png_size(data))
