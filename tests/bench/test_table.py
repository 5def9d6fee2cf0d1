"""The page that the benchmark prints."""

import pytest

from bench.table import Bar, Result, Series, shown


@pytest.mark.parametrize(
    ("figure", "at_most", "met"),
    [(99.0, False, False), (100.0, False, True), (100.0, True, True), (101.0, True, False)],
)
def test_a_bar_is_met_at_its_limit(figure: float, at_most: bool, met: bool) -> None:
    """A figure that is exactly at its limit meets its bar, from either side."""
    assert Bar("speed", "MB/s", figure, 100, at_most=at_most).is_met is met


def test_typical_is_the_median() -> None:
    """The typical figure is the median, so one disturbed round does not move it."""
    assert Series("speed", "MB/s", (300.0, 310.0, 2.0, 305.0, 9000.0)).typical == 305.0


@pytest.mark.parametrize(
    ("number", "text"),
    [(1234567.0, "1,234,567"), (100.4, "100"), (99.96, "100"), (12.345, "12.3"), (0.2504, "0.25")],
)
def test_numbers_are_shown_with_what_can_be_known(number: float, text: str) -> None:
    """Large numbers are shown without a fraction, small ones with three digits."""
    assert shown(number) == text


def test_the_page_tells_where_it_comes_from_and_what_was_missed() -> None:
    """The page has facts, bars, figures with their spread and CPU, and the method."""
    result = Result(
        facts=(("machine", "two cores"),),
        method=("Medians.",),
        series=(Series("produce", "MB/s", (310.0, 290.0, 300.0), (("broker", 0.25),)),),
        bars=(
            Bar("produce", "MB/s", 300.0, 300),
            Bar("lone produce", "ms", 1.5, 1, at_most=True),
        ),
    )
    assert not result.all_met
    lines = result.markdown().splitlines()
    assert "- machine: two cores" in lines
    assert "| produce | ≥ 300 MB/s | 300 MB/s | met |" in lines
    assert "| lone produce | ≤ 1 ms | 1.5 ms | **missed** |" in lines
    assert "| produce | 300 | 290 to 310 | MB/s | broker 0.25 |" in lines
    assert "- Medians." in lines
