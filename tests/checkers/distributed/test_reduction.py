"""What is outside of a settled block may concern its records: then all of them are judged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkers.distributed import blocks, plan, range_task
from tests.checkers.distributed import defects
from tests.checkers.distributed.test_plan import at_once, in_chunks
from tests.checkers.distributed.test_range_task import written

Events = defects.Events
WIDTH = 16


class Builder:
    """Builds a history, one event after the other."""

    def __init__(self) -> None:
        self.events: Events = []
        self._ns = 0

    def done(
        self, process: int, f: str, asked: Any, answered: Any = None, kind: str = "ok"
    ) -> None:
        """Add an operation; without an answer, it is answered as it was asked."""
        self.begin(process, f, asked)
        self.end(process, f, asked if answered is None else answered, kind)

    def begin(self, process: int, f: str, asked: Any) -> None:
        """Add an invocation."""
        self.end(process, f, asked, "invoke")

    def end(self, process: int, f: str, value: Any, kind: str = "ok") -> None:
        """Add a completion."""
        self._ns += 1000
        about = {"time_ns": self._ns, "process": process, "type": kind, "f": f, "value": value}
        self.events.append({"index": len(self.events), **about})

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self._ns += seconds * 10**9

    def fault(self, phase: str) -> None:
        """Begin a fault, or heal it."""
        value = {"id": 0, "phase": phase, "targets": ["broker-1"], "options": {}}
        effect = {"effect": {"proved": True, "how": "state T"}} if phase == "apply" else {}
        self.end(-1, "pause", value, "invoke")
        self.end(-1, "pause", value | effect, "info")

    def sent(self, offset: int, value: int, process: int = 0, f: str = "send") -> None:
        """Let a process send a record."""
        self.done(process, f, [["send", "x", value]], [["send", "x", [offset, value]]])

    def read(self, process: int, records: list[tuple[int, int]]) -> None:
        """Let a process read records, five at a time."""
        for begin in range(0, len(records), 5):
            some = [[*record] for record in records[begin : begin + 5]]
            self.done(process, "poll", [["poll"]], [["poll", {"x": some}]])

    def finished(self, process: int, end: int) -> None:
        """Let a process find that it has reached the end."""
        self.done(process, "catch-up", [["catch-up", "x"]], [["catch-up", "x", end, end]])


def a_value_in_two_blocks(history: Builder) -> None:
    records = [(n, n if n != 40 else 5) for n in range(64)]
    for record in records:
        history.sent(*record)
    history.read(8, records)


def a_reader_that_skips_a_block(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    for record in records:
        history.sent(*record)
    history.read(8, records)
    history.read(9, records[:16] + records[32:])


def a_reader_between_whose_records_are_others(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    for record in records:
        history.sent(*record)
    history.read(8, records[:24] + records[48:] + records[24:48])


def a_final_reader_that_began_late(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    history.done(8, "assign", ["x"])
    for record in records:
        history.sent(*record)
    history.read(8, records[:40])
    history.done(8, "assign", ["y"])
    history.done(8, "assign", ["x"])
    history.read(8, records[40:])
    history.finished(8, 64)


def blocks_in_the_wrong_order(history: Builder) -> None:
    offsets = [*range(16), *range(32, 48), *range(16, 32), *range(48, 64)]
    records = list(zip(offsets, range(64), strict=True))
    for number, record in enumerate(records):
        history.sent(*record, process=number)
    history.read(8, sorted(records))


def blocks_of_one_process_in_the_wrong_order(history: Builder) -> None:
    offsets = [*range(16), *range(32, 48), *range(16, 32), *range(48, 64)]
    records = list(zip(offsets, range(64), strict=True))
    for record in records:
        history.sent(*record)
    history.read(8, sorted(records))


def an_operation_with_others_between_its_records(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    for record in records[:14]:
        history.sent(*record)
    asked = [["send", "x", n] for n in (14, 17)], [["send", "x", n] for n in (15, 16)]
    for process, value in enumerate(asked):
        history.begin(process, "send", value)
    for process, value in enumerate(asked):
        history.end(process, "send", [["send", "x", [n, n]] for _, _, n in value])
    for record in records[18:]:
        history.sent(*record)
    history.read(8, records)


def sends_that_all_fail_after_a_fault(history: Builder) -> None:
    records = [(2 * n, n) for n in range(32)]
    history.fault("apply")
    for record in records:
        history.sent(*record)
    history.read(8, records)
    history.fault("heal")
    for n in range(8):
        history.wait(6)
        asked = [["send", "x", 100 + n]]
        history.done(20 + n, "send", asked, [["send", "x", [2 * n + 1, 100 + n]]], "fail")


def a_long_lag(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    history.sent(*records[0])
    history.read(8, records[:1])
    for record in records[1:30]:
        history.sent(*record)
    history.wait(2)
    history.read(8, records[1:30])
    for record in records[30:]:
        history.sent(*record)
        history.read(8, [record])
    history.read(9, records[:10])


def a_cycle_over_the_records_of_a_block(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    history.begin(99, "txn", [["poll"], ["send", "x", 16]])
    for record in records[:16]:
        history.sent(*record, f="txn")
    value = [["poll", {"y": [[0, 2]]}], ["send", "x", [16, 16]]]
    history.begin(98, "txn", [["send", "x", 31], ["send", "y", 2]])
    history.end(99, "txn", value)
    for record in records[17:31]:
        history.sent(*record, f="txn")
    history.end(98, "txn", [["send", "x", [31, 31]], ["send", "y", [0, 2]]])
    for record in records[32:]:
        history.sent(*record, f="txn")
    history.read(8, records)


def a_fenced_transaction_in_a_block(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    history.done(50, "init", [["init", "id-1"]])
    for record in records[:16]:
        history.sent(*record, f="txn")
    history.begin(50, "txn", [["send", "x", 20]])
    for record in records[16:19]:
        history.sent(*record, f="txn")
    history.done(51, "init", [["init", "id-1"]])
    history.sent(19, 19, f="txn")
    history.begin(60, "txn", [["send", "x", 21]])
    for record in records[22:32]:
        history.sent(*record, f="txn")
    history.end(50, "txn", [["send", "x", [20, 20]]])
    history.end(60, "txn", [["send", "x", [21, 21]]])
    for record in records[32:]:
        history.sent(*record, f="txn")
    history.read(8, records)


def a_fenced_transaction_after_a_block(history: Builder) -> None:
    records = [(n, n) for n in range(64)]
    history.done(50, "init", [["init", "id-1"]])
    for record in records[:15]:
        history.sent(*record, f="txn")
    history.begin(50, "txn", [["send", "x", 17]])
    history.begin(61, "txn", [["send", "x", 16]])
    history.begin(60, "txn", [["send", "x", 18]])
    history.done(51, "init", [["init", "id-1"]])
    history.sent(15, 15, f="txn")
    history.end(61, "txn", [["send", "x", [16, 16]]])
    history.end(50, "txn", [["send", "x", [17, 17]]])
    for record in records[19:32]:
        history.sent(*record, f="txn")
    history.end(60, "txn", [["send", "x", [18, 18]]])
    for record in records[32:]:
        history.sent(*record, f="txn")
    history.read(8, records)


BUILDS: list[Callable[[Builder], None]] = [
    a_value_in_two_blocks,
    a_reader_that_skips_a_block,
    a_reader_between_whose_records_are_others,
    a_final_reader_that_began_late,
    blocks_in_the_wrong_order,
    blocks_of_one_process_in_the_wrong_order,
    an_operation_with_others_between_its_records,
    sends_that_all_fail_after_a_fault,
    a_long_lag,
    a_cycle_over_the_records_of_a_block,
    a_fenced_transaction_in_a_block,
    a_fenced_transaction_after_a_block,
]


@pytest.mark.parametrize("build", BUILDS)
def test_between_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Callable[[Builder], None]
) -> None:
    """Each block is settled on its own, and what is between them is found."""
    history = Builder()
    build(history)
    monkeypatch.setattr(plan, "LARGE_ROWS", 1)
    monkeypatch.setattr(range_task, "WIDTH", WIDTH)
    monkeypatch.setattr(blocks, "DIVIDED", 2)
    path = written(tmp_path / "history.jsonl", history.events)
    assert in_chunks(path, 1500) == at_once(path)
