"""Histories that break only promises that the contract does not make are valid under it.

The strictest contract finds their anomalies. The simulated cluster is one partition: sends are
acknowledged as the contract says, readers receive what is below the high watermark, and the leader
fails over to a replica that holds less.
"""

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers import findings, inline, overview
from checkers.expectations import Contract
from checkers.kernels import history_kernels
from model.op import Op

SEEDS = st.integers(0, 2**32)


class Habits(NamedTuple):
    """What the configuration allows to happen."""

    acks: str = "all"
    idempotent: bool = True
    unclean: bool = False
    replication_factor: int = 3
    in_flight: int = 5

    @property
    def contract(self) -> Contract:
        return Contract(
            acks=self.acks,
            idempotent=self.idempotent,
            unclean_elections=self.unclean,
            replication_factor=self.replication_factor,
            in_flight=self.in_flight,
        )


STRICT = Habits()
WEAK = [
    Habits(acks="1", idempotent=False),
    Habits(acks="1", idempotent=False, in_flight=1),
    Habits(acks="0", idempotent=False),
    Habits(acks="0", idempotent=False, replication_factor=1),
    Habits(acks="1", idempotent=False, replication_factor=1),
    Habits(idempotent=False),
    Habits(unclean=True),
    Habits(acks="1", idempotent=False, unclean=True),
]


class Partition:
    """A log as its contract allows, and the history that its clients see."""

    def __init__(self, habits: Habits, rng: random.Random) -> None:
        self.habits, self.rng = habits, rng
        self.log: list[int] = []
        self.watermark = 0
        self.next_value = 0
        self.positions: dict[int, int] = {}
        self.next_process = 10
        self.ops: list[Op] = []

    def note(self, process: int, kind: Any, f: str, value: Any) -> None:
        at = len(self.ops)
        self.ops.append(
            Op(index=at, time_ns=at * 10**6, process=process, type=kind, f=f, value=value)
        )

    def send(self, process: int) -> None:
        values = list(range(self.next_value, self.next_value + self.rng.randint(1, 3)))
        self.next_value = values[-1] + 1
        self.note(process, "invoke", "send", [["send", "x-0", value] for value in values])
        done: list[Any] = []
        order = list(values)
        weak = not self.habits.idempotent
        if (
            weak and self.habits.in_flight > 1 and self.rng.random() < 0.2
        ):  # with several in flight, the first again
            self.rng.shuffle(order)
        told: dict[int, int] = {}
        for value in order:
            if self.habits.acks == "0" and self.rng.random() < 0.1:
                continue  # it is never known
            if weak and self.habits.acks != "0" and self.rng.random() < 0.1:
                self.log.append(value)  # its answer was lost
            told[value] = len(self.log)
            self.log.append(value)
        if self.habits.acks == "all":
            self.watermark = len(self.log)
        for value in values:
            known = told.get(value) if self.habits.acks != "0" else None
            done.append(["send", "x-0", [known, value]])
        self.note(process, "ok", "send", done)

    def fail_over(self) -> None:
        """Fail over to a replica that has everything below the high watermark; if unclean, less."""
        if self.habits.replication_factor == 1:
            return
        least = self.rng.randint(0, self.watermark) if self.habits.unclean else self.watermark
        del self.log[self.rng.randint(least, len(self.log)) :]
        self.watermark = min(self.watermark, len(self.log))

    def poll(self, process: int) -> None:
        begin = min(self.positions.get(process, 0), self.watermark)
        end = min(self.watermark, begin + self.rng.randint(0, 8))
        self.positions[process] = end
        records = [[offset, self.log[offset]] for offset in range(begin, end)]
        self.note(process, "invoke", "poll", [["poll"]])
        self.note(process, "ok", "poll", [["poll", {"x-0": records} if records else {}]])

    def final(self) -> None:
        self.watermark = len(self.log)
        reader = self.next_process
        for kind in ("invoke", "ok"):
            self.note(reader, kind, "assign", ["x-0"])
        while self.positions.get(reader, 0) < self.watermark:
            self.poll(reader)
        self.note(reader, "invoke", "catch-up", [["catch-up", "x-0"]])
        self.note(reader, "ok", "catch-up", [["catch-up", "x-0", self.watermark, self.watermark]])

    def history(self, steps: int, *, whole: bool) -> list[Op]:
        """``whole`` adds the final reads; without them, the harness was killed."""
        for _ in range(steps):
            what = self.rng.random()
            if what < 0.5:
                self.send(self.rng.randrange(3))
            elif what < 0.85:
                self.poll(self.rng.randrange(5, 7))
            elif what < 0.95:
                self.watermark = self.rng.randint(self.watermark, len(self.log))
            else:
                self.fail_over()
        if whole:
            self.final()
        return self.ops


def counted(histories: Any, ops: list[Op], contract: Contract) -> dict[str, int]:
    """Count the illegal findings."""
    tables = histories.tables(ops)
    reports = inline.judge(tables, lambda done: None)
    assert not [r for report in reports.values() for r in report.checker_runs if r.crash]
    told = history_kernels.judge(tables, [f for report in reports.values() for f in report.found])
    assert not [r for r in told.checker_runs if r.crash]
    return findings.counts(
        findings.findings(told.found, overview.of(tables), contract), legal=False
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(SEEDS, st.sampled_from([STRICT, *WEAK]), st.integers(1, 120), st.booleans())
def test_what_was_not_promised_is_no_anomaly(
    histories: Any, seed: int, habits: Habits, steps: int, whole: bool
) -> None:
    """What the contract does not promise is no anomaly, with or without final reads."""
    ops = Partition(habits, random.Random(seed)).history(steps, whole=whole)
    if ops:
        assert counted(histories, ops, habits.contract) == {}


@pytest.mark.parametrize("seen", [True, False])
def test_a_place_that_was_only_acknowledged_is_no_place(histories: Any, seen: bool) -> None:
    """With acks=1, an acknowledged record may have lost its place to a later one, but a record that
    was read has not."""
    unread, read = "s:x-0=a@5 s1:x-0=b@2 p:x-0=b@2", "p8:x-0=b@2,x-0=a@5"
    ops = histories.events(f"{unread} {read}" if seen else unread)
    lossy = Contract(acks="1", idempotent=False, in_flight=1)
    assert counted(histories, ops, lossy) == ({"realtime-order": 1} if seen else {})
    assert counted(histories, ops, STRICT.contract) == {"realtime-order": 1}


@pytest.mark.parametrize("habits", [h for h in WEAK if h.replication_factor > 1])
def test_the_strictest_contract_sees_it(histories: Any, habits: Habits) -> None:
    """The strictest contract finds the anomalies that the contract of a history permits."""
    ops = Partition(habits, random.Random(3)).history(400, whole=True)
    assert counted(histories, ops, STRICT.contract)
