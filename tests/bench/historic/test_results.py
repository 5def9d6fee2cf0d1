"""The file of results: what counts as expected, and which runs belong to the present plan."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.historic import results
from bench.historic.results import Results, Run
from bench.historic.stories import STORIES, Place

STORY = STORIES["kip-101-loss"]
OLD, NEW, MUTANT, OURS = STORY.places


def run(place: Place, **facts: Any) -> Run:
    known = {"system": place.system, "mutants": place.mutants, "seed": 1, "digest": "d"}
    return Run(**{**known, "status": 0, "valid": True, **facts})


@pytest.mark.parametrize(
    ("place", "facts", "expected"),
    [
        (OLD, {"valid": False, "status": 1, "anomalies": {"lost-write": 3}}, True),
        (OLD, {"valid": False, "status": 1, "anomalies": {"duplicate": 3}}, False),
        (OLD, {"valid": False, "status": 70, "anomalies": {"lost-write": 3}}, False),
        (OLD, {}, False),
        (OLD, {"valid": "unknown", "status": 2}, False),
        (MUTANT, {"valid": False, "status": 1, "anomalies": {"lost-write": 3}}, True),
        (NEW, {}, True),
        (NEW, {"valid": "unknown", "status": 2}, False),
        (OURS, {"valid": False, "status": 1, "anomalies": {"lost-write": 3}}, False),
    ],
)
def test_what_is_expected_of_a_run(place: Place, facts: dict[str, Any], expected: bool) -> None:
    """With the bug: ``INVALID`` with the story's anomaly; without it: ``VALID``, nothing less."""
    assert run(place, **facts).is_as_expected(STORY, place) is expected


def test_runs_of_another_plan_or_release_do_not_count() -> None:
    """A run counts only for the plan file, the release and the mutants that it was made with."""
    found = Results().with_run(STORY, OLD, run(OLD)).with_run(STORY, OLD, run(OLD, seed=2))
    assert list(found.of(STORY, OLD, "d")) == [1, 2]
    assert list(found.of(STORY, OLD, "another")) == []
    assert list(found.of(STORY, OLD._replace(system="apache-kafka:0.11.0.0"), "d")) == []
    assert list(found.of(STORY, NEW, "d")) == []
    later = found.with_run(STORY, OLD, run(OLD, digest="another"))
    assert list(later.runs[STORY.name]["old"]) == ["1"]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Runs survive the file; a missing file has no runs, and another file is refused."""
    path = tmp_path / "historic.json"
    assert results.read(path) == Results()
    found = results.add(path, STORY, NEW, run(NEW, seconds=61.5, allowed={"int-send-skip": 2}))
    assert found == Results().with_run(STORY, NEW, found.of(STORY, NEW, "d")[1])
    assert results.add(path, STORY, OLD, run(OLD)) == results.read(path) != found
    path.write_text('{"runs": 7}')
    with pytest.raises(msgspec.MsgspecError):
        results.read(path)
