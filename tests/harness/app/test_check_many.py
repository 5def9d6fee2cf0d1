"""Several histories of one command: patterns of names."""

from pathlib import Path

import pytest

from harness.app.check_many import histories, matching
from harness.app.refused import Refused


def test_a_pattern_stands_for_what_it_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patterns match files and folders at any depth, and are sorted; other paths are kept."""
    for name in ("b.jsonl", "a.jsonl", "c.edn", "runs/seed7/d.jsonl", "runs/seed7/history.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert matching(tmp_path / "*.jsonl") == [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    assert matching(tmp_path / "**" / "d.jsonl") == [tmp_path / "runs" / "seed7" / "d.jsonl"]
    assert matching(tmp_path / "runs" / "seed[0-9]") == [tmp_path / "runs" / "seed7"]
    assert matching(tmp_path / "missing") == [tmp_path / "missing"], "refused when it is read"
    monkeypatch.chdir(tmp_path)
    assert matching(Path("*.edn")) == [Path("c.edn")]


def test_a_name_with_a_bracket_is_no_pattern_where_it_exists(tmp_path: Path) -> None:
    """A file that exists is judged, whatever its name is."""
    (tmp_path / "run[1].jsonl").touch()
    (tmp_path / "run1.jsonl").touch()
    assert matching(tmp_path / "run[1].jsonl") == [tmp_path / "run[1].jsonl"]


def test_a_pattern_without_a_match_is_refused(tmp_path: Path) -> None:
    """Nothing is judged silently."""
    with pytest.raises(Refused, match="no file or folder has such a name"):
        matching(tmp_path / "*.jsonl")


def test_what_holds_no_history_is_left_out(tmp_path: Path) -> None:
    """A folder of results also holds other things; each of them is named."""
    for name in ("run/history.jsonl", "judgements/run/verdict.json", "README.md", "a.jsonl.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    messages: list[str] = []
    found = histories(tmp_path / "*", messages.append)
    assert found == [tmp_path / "a.jsonl.gz", tmp_path / "run"]
    assert messages == [
        f"{tmp_path / name} holds no history and is left out"
        for name in ("README.md", "judgements")
    ]
    messages.clear()
    assert histories(tmp_path / "*.md", messages.append) == [tmp_path / "README.md"]
    assert histories(tmp_path / "README.md", messages.append) == [tmp_path / "README.md"]
    assert not messages, "the reader refuses it"


def test_a_run_that_lost_its_history_is_not_left_out(tmp_path: Path) -> None:
    """It is refused, so that its loss is noticed; so is a file that may be a history."""
    for name in ("run/history.jsonl", "crashed/plan.json", "history", "events.dat"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    messages: list[str] = []
    found = histories(tmp_path / "*", messages.append)
    assert [path.name for path in found] == ["crashed", "events.dat", "history", "run"]
    assert not messages
