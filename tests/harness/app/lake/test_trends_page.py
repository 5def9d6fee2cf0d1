"""The page of trends: what changed, the plots, and all comparisons."""

from pathlib import Path

from harness.app.lake import trends, trends_page
from tests.harness.app.lake import made_rows
from tests.harness.app.lake.made_rows import commit, rows, slower_from, steady


def test_a_page(tmp_path: Path) -> None:
    """The page names what is worse and has a plot of each figure; it needs no network."""
    lake = made_rows.lake(
        tmp_path / "lake", rows(range(6), 12, slower_from(3)), rows([1], 4, steady, suite="<b>")
    )
    found, series = trends.find(lake, None, None)
    text = trends_page.render(tmp_path / "page.html", found, series).read_text()
    assert "<h1>WORSE</h1>" in text
    assert trends.sentence(found.worse[0]).replace("<", "&lt;") in text
    assert commit(3)[:9] in text
    assert "<b> · kafka" not in text
    assert "default-src 'none'" in text
    _, sections = trends_page.draw(found, series)
    assert [len(section.plots) for section in sections] == [3, 3]


def test_an_empty_lake_has_a_page(tmp_path: Path) -> None:
    """Without runs the page says so."""
    found, series = trends.find(made_rows.lake(tmp_path / "lake"), None, None)
    text = trends_page.render(tmp_path / "page.html", found, series).read_text()
    assert "NOT WORSE" in text
    assert "has no runs to compare" in text
