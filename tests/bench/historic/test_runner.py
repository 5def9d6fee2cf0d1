"""The runner, with a command that answers at once."""

from pathlib import Path

from bench.historic import results, runner
from bench.historic.stories import STORIES
from tests.bench.historic.conftest import UNKNOWN, FakeFaultline

STORY = STORIES["kip-101-loss"]
PAIRS = [(STORY, place) for place in STORY.places]
PLAN = "examples/historic/kip-101-loss.toml"


def test_each_seed_runs_at_every_place(fake: FakeFaultline, tmp_path: Path) -> None:
    """The commands are those of a user, with the options that make their result readable."""
    lines: list[str] = []
    data = tmp_path / "historic.json"
    found = runner.measure(PAIRS, data, tmp_path, 2, lines.append, command=fake)
    more = ["--inline", "--json", "--results", str(tmp_path)]
    assert fake.asked[:4] == [
        ["run", PLAN, "--system", "apache-kafka:0.10.2.2", "--seed", "1", *more],
        ["run", PLAN, "--system", "apache-kafka:0.11.0.3", "--seed", "1", *more],
        ["run", PLAN, "--mutant", "truncate-to-hw-loss", "--seed", "1", *more],
        ["run", PLAN, "--seed", "1", *more],
    ]
    assert len(fake.asked) == 8
    assert "apache-kafka:0.10.2.2, seed 1: INVALID lost-write 16 (as expected" in lines[0]
    old, *_ = STORY.places
    first = found.of(STORY, old, runner.digest(STORY))[1]
    assert (first.valid, first.acknowledged, first.commit) == (False, 1209, "abc")
    assert results.read(data) == found


def test_only_missing_runs_are_done(fake: FakeFaultline, tmp_path: Path) -> None:
    """What was measured is not measured again, whatever its verdict was."""
    data = tmp_path / "historic.json"
    fake.answer = lambda words: UNKNOWN
    runner.measure(PAIRS, data, tmp_path, 1, lambda line: None, command=fake)
    runner.measure(PAIRS, data, tmp_path, 2, lambda line: None, command=fake)
    assert [words[words.index("--seed") + 1] for words in fake.asked] == ["1"] * 4 + ["2"] * 4


def test_a_command_that_fails_is_a_run_without_a_verdict(
    fake: FakeFaultline, tmp_path: Path
) -> None:
    """The end of its output is kept, and the run is not as expected."""
    lines: list[str] = []
    fake.answer = lambda words: 70
    data = tmp_path / "historic.json"
    found = runner.measure(PAIRS, data, tmp_path, 1, lines.append, command=fake)
    _, new, *_ = STORY.places
    run = found.of(STORY, new, runner.digest(STORY))[1]
    assert (run.valid, run.status, run.why) == ("unknown", 70, ("one", "two"))
    assert all("UNKNOWN  (NOT AS EXPECTED" in line for line in lines)


def test_every_run_is_stored_at_once(fake: FakeFaultline, tmp_path: Path) -> None:
    """A measurement that is interrupted has stored every run that had ended."""
    seen: list[int] = []
    data = tmp_path / "historic.json"
    runner.measure(
        *(PAIRS, data, tmp_path, 1, lambda line: None),
        command=fake,
        stored=lambda found: seen.append(
            sum(len(runs) for runs in results.read(data).runs[STORY.name].values())
        ),
    )
    assert seen == [1, 2, 3, 4]
