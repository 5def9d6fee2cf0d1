"""``faultline search`` obeys a plan file in all that it names."""

from pathlib import Path
from typing import Any

import pytest

from harness.app import exits
from harness.app.cli import main
from harness.app.run import Failed
from harness.app.search import campaign
from harness.app.search.campaign import SearchRequest


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Replace the search itself, and remember where it was to be and what was pinned."""
    asked: list[tuple[Path, dict[str, Any]]] = []

    def run(request: SearchRequest, results: Path, *_: Any) -> None:
        asked.append((results, dict(request.pinned)))
        raise Failed("enough")

    monkeypatch.setattr(campaign, "run", run)
    monkeypatch.setattr("harness.app.cli.request.pin", lambda targets: None)
    monkeypatch.chdir(tmp_path)
    return asked


def _search(*arguments: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["search", "--runs", "1", *arguments])
    return ended.value.code


def test_results_are_where_the_plan_file_says(
    searches: list[tuple[Path, dict[str, Any]]],
) -> None:
    """An option comes before the plan file, and the plan file before the default."""
    Path("plan.toml").write_text('results = "nightly"\ninline = true\nbrokers = 3\n')
    for arguments in (["plan.toml"], ["plan.toml", "--results", "mine"], []):
        assert _search(*arguments) == exits.FAILED
    assert [results for results, _ in searches] == [Path("nightly"), Path("mine"), Path("results")]
    assert [pinned for _, pinned in searches] == [{"brokers": 3}, {"brokers": 3}, {}]


def test_a_search_is_judged_inline(
    searches: list[tuple[Path, dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan file that asks for Spark is refused, with the option that judges so, too."""
    Path("plan.toml").write_text("inline = false\n")
    assert _search("plan.toml") == 64
    assert searches == []
    assert "inline = false: a search judges inline; --spark" in capsys.readouterr().err
