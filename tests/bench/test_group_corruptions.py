"""Each kind of wrong answer is planted where no correct Kafka could give it, and is found."""

import random
from pathlib import Path
from typing import Any

import pytest

from bench.group_corruptions import illegal, measure, table
from bench.group_history import Brokers, Change, GroupHistory, coordinating_partition
from bench.group_kinds import KINDS, Corruption, Source

GROUP, KEYS = "g", ("x-0", "x-1")
WRITER, READER, FIRST_MEMBER = 0, 1, 10
SECOND = 1_000_000_000


class World:
    """A group of correct members that act one after the other; one broker is paused for a while."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.events: list[dict[str, Any]] = []
        self.ends = dict.fromkeys(KEYS, 0)
        self.committed: dict[str, list[int] | None] = dict.fromkeys(KEYS)
        self.generation = 0
        self.owners: dict[str, int] = {}
        self.positions: dict[str, int] = {}

    def did(self, process: int, f: str, asked: Any, told: Any, type_: str = "ok") -> None:
        for kind, value in (("invoke", asked), (type_, told)):
            index = len(self.events)
            event = {"index": index, "time_ns": index * SECOND // 4, "process": process}
            self.events.append({**event, "type": kind, "f": f, "value": value})

    def fault(self, phase: str) -> None:
        value = {"id": 1, "phase": phase, "targets": ["broker-1"], "options": {}}
        self.did(-1, "pause", value, {**value, "effect": {"proved": True, "how": ""}}, "info")

    def send(self) -> None:
        key = self.rng.choice(KEYS)
        offset = self.ends[key]
        self.ends[key] += 1
        self.did(WRITER, "send", [["send", key, offset]], [["send", key, [offset, offset]]])

    def fetch(self) -> None:
        keys = self.rng.sample(KEYS, self.rng.randint(1, 2))
        asked = [["committed", GROUP, dict.fromkeys(keys)]]
        told = {key: self.committed[key] for key in keys}
        self.did(READER, "committed", asked, [["committed", GROUP, told]])

    def rebalance(self) -> None:
        """Assign each partition to a new member; the former ones commit too late, and then hear of
        it."""
        formers, positions, self.generation = self.owners, self.positions, self.generation + 1
        self.owners = {
            key: FIRST_MEMBER + 2 * self.generation + place for place, key in enumerate(KEYS)
        }
        self.positions = {key: (self.committed[key] or [0])[0] for key in KEYS}
        how = ["subscribe", GROUP, ["x"], {"commit": "sync"}]
        for key, member in self.owners.items():
            self.did(member, "subscribe", [how], [how])
            self.poll(key, ["assigned", GROUP, self.generation, {key: self.positions[key]}])
        for key, member in formers.items():
            if positions[key]:
                late = [["commit", GROUP, {key: positions[key]}, "sync"]]
                self.did(member, "commit", late, late, "fail")
            lost = ["lost", GROUP, self.generation - 1, [key]]
            self.did(member, "poll", [["poll"]], [lost, ["poll", {}]])

    def poll(self, key: str, *told: Any) -> None:
        end = min(self.ends[key], self.positions[key] + self.rng.randint(0, 3))
        pairs = [[offset, offset] for offset in range(self.positions[key], end)]
        self.positions[key] = end
        records = {key: pairs} if pairs else {}
        self.did(self.owners[key], "poll", [["poll"]], [*told, ["poll", records]])

    def poll_some(self) -> None:
        self.poll(self.rng.choice(KEYS))

    def commit(self) -> None:
        key = self.rng.choice(KEYS)
        if at := self.positions[key]:
            self.committed[key] = [at, at + 1000]
            value = [["commit", GROUP, {key: [at, at + 1000]}, "sync"]]
            self.did(self.owners[key], "commit", value, value)

    def final(self) -> None:
        self.rebalance()
        for key in KEYS:
            while self.positions[key] != self.ends[key]:
                self.poll(key)


def correct(seed: int) -> list[dict[str, Any]]:
    """Return a history of correct members."""
    world = World(seed)
    for _ in range(8):
        world.send()
    world.rebalance()
    for step in range(150):
        if step in (30, 45):
            world.fault("apply" if step == 30 else "heal")
        doing = (world.send, world.send, world.poll_some, world.commit, world.fetch, world.fetch)
        world.rng.choice((*doing, world.rebalance) if step % 8 == 0 else doing)()
    world.final()
    return world.events


def source(seed: int) -> Source:
    return Source(Path(f"seed{seed}"), GroupHistory(correct(seed)), None)


def test_every_kind_is_found() -> None:
    """Every planted corruption is found, and the histories themselves are correct."""
    sources = [source(seed) for seed in range(3)]
    scores = measure(sources, each=2, seed=1, say=lambda line: None)
    assert {kind: score.missed for kind, score in scores.items() if score.missed} == {}
    assert [kind for kind, score in scores.items() if not score.planted] == []
    assert all(score.found == score.planted for score in scores.values())
    assert "100%" in table(scores)


@pytest.mark.parametrize("seed", range(5))
def test_a_correct_history_is_valid(seed: int, tmp_path: Path) -> None:
    """A history without a corruption is valid."""
    assert illegal(correct(seed), None, tmp_path) == []


def test_one_observation_is_changed() -> None:
    """A corruption changes a few events in a copy, and the original stays as it is."""
    origin = source(1)
    before = [repr(event) for event in origin.history.events]
    for plant in KINDS.values():
        trial = plant(origin, random.Random(7))
        if isinstance(trial, Corruption):
            after = [repr(event) for event in trial.events]
            changed = sum(a != b for a, b in zip(before, after, strict=True))
            assert 1 <= changed <= 8
    assert [repr(event) for event in origin.history.events] == before


def test_a_former_coordinator_excuses_what_it_knew() -> None:
    """A former coordinator may return what was committed when the leader changed, for a limited
    time."""
    value = [["commit", GROUP, {"x-0": 5}, "sync"]]
    world = World(0)
    world.did(1, "commit", value, value)
    value = [["commit", GROUP, {"x-0": 9}, "sync"]]
    for _ in range(40):
        world.fetch()
    world.did(1, "commit", value, value)
    for _ in range(100):
        world.fetch()
    tp = coordinating_partition(GROUP, 4)
    for time_s, offset, place, stale in (
        (15, 5, 90, True),
        (15, 9, 90, False),
        (15, None, 90, False),
        (22, 5, 90, False),
        (15, 5, 200, False),  # by then it has heard
    ):
        brokers = Brokers()
        brokers.changes[tp].append(Change(time_s * SECOND, 1))
        history = GroupHistory(world.events, brokers)
        assert history.possibly_stale((GROUP, "x-0"), offset, place) == stale


def test_the_coordinator_is_found_by_the_groups_name() -> None:
    """A group's name is mapped to its coordinator's partition as Java hashes it."""
    assert coordinating_partition("group0", 50) == "__consumer_offsets-41"
