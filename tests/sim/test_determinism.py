"""A simulated run depends on its plan alone."""

from pathlib import Path

import pytest

from tests.sim.conftest import VALID, Faultline

RUN = ("run", "--target", "simulated", "--time-limit", 20)


@pytest.mark.timeout(300)
def test_a_replay_is_the_same_run(faultline: Faultline, tmp_path: Path) -> None:
    """A replay is byte for byte the same run, in another directory, home, time zone and
    environment, and although only the first run is watched."""
    first = faultline(*RUN, "--seed", 7, "--watch")
    assert first.status == VALID
    assert first.verdict["evidence"]["faults_effective"] >= 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = faultline(
        "replay",
        first.folder,
        results="again",
        cwd=elsewhere,
        HOME=str(elsewhere),
        TZ="Asia/Kathmandu",
        PADDING="x" * 5000,
    )
    assert again.status == VALID
    for name in ("history.jsonl", "schedule.jsonl", "run.json", "nodes/broker-1/log.txt"):
        assert again.hash_of(name) == first.hash_of(name), name
    assert again.verdict["evidence"] == first.verdict["evidence"]


@pytest.mark.timeout(300)
def test_another_seed_is_another_run(faultline: Faultline) -> None:
    """Another seed is another run, even without faults."""
    quiet = ("run", "--target", "simulated", "--time-limit", 3, "--nemesis", "none")
    hashes = [
        faultline(*quiet, "--seed", seed, results=str(seed)).hash_of("history.jsonl")
        for seed in (1, 2)
    ]
    assert hashes[0] != hashes[1]
