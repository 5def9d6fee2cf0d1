"""The page that is generated from the results."""

from bench.historic.page import page
from bench.historic.results import Results, Run
from bench.historic.stories import STORIES

STORY = STORIES["kip-101-loss"]


def results() -> Results:
    found = Results()
    for place in STORY.places:
        for seed in (1, 2):
            faulty = place.has_bug and not (place.part == "mutant" and seed == 2)
            run = Run(
                system=place.system,
                mutants=place.mutants,
                seed=seed,
                digest="d",
                status=1 if faulty else 0,
                valid=not faulty,
                anomalies={"lost-write": 15 + seed} if faulty else {},
                acknowledged=1000 * seed,
                faults=5,
                effective=5,
                seconds=70.0,
            )
            found = found.with_run(STORY, place, run)
    return found


def test_rows_count_what_was_convicted_and_acquitted() -> None:
    """The overview counts runs, and a number that is not complete stands out."""
    text = page([STORY], results(), {STORY.name: "d"})
    assert "| 0.10.2.2; `truncate-to-hw-loss` | 2 of 2; **1 of 2** |" in text
    assert "| 0.11.0.3; our broker | 2 of 2; 2 of 2 |" in text
    assert "| apache-kafka:0.10.2.2 | 2 of 2 | `lost-write` 16 to 17 | 1,000 to 2,000 |" in text
    assert "| 10 of 10 | 70 |" in text
    assert "$ faultline run examples/historic/kip-101-loss.toml --mutant truncate-to-hw-l" in text
    assert "https://issues.apache.org/jira/browse/KAFKA-1211" in text


def test_a_story_without_runs_is_not_measured() -> None:
    """Runs of a plan file that has changed since do not count."""
    text = page([STORY], results(), {STORY.name: "changed"})
    assert "| not measured; not measured |" in text
