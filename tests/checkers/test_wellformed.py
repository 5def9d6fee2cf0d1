"""Histories that contradict themselves are rejected with their line; near misses are judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from checkers import history_file, table_builder
from harness.app import check
from model.history import BadHistory

Event = dict[str, Any]


def event(index: int, process: int, kind: str, f: str, value: Any, **more: Any) -> Event:
    """Return an event at ``index`` milliseconds."""
    return {
        "index": index,
        "time_ns": index * 1_000_000,
        "process": process,
        "type": kind,
        "f": f,
        "value": value,
        **more,
    }


def base() -> list[Event]:
    """Return a history in which each of two processes sends a record, and both are read."""
    return [
        event(0, 1, "invoke", "send", [["send", "x-0", 1]]),
        event(1, 1, "ok", "send", [["send", "x-0", [0, 1]]]),
        event(2, 2, "invoke", "send", [["send", "x-0", 2]]),
        event(3, 2, "info", "send", [["send", "x-0", 2]]),
        event(4, 3, "invoke", "poll", [["poll"]]),
        event(5, 3, "ok", "poll", [["poll", {"x-0": [[0, 1], [1, 2]]}]]),
        event(6, 3, "invoke", "catch-up", [["catch-up", "x-0"]]),
        event(7, 3, "ok", "catch-up", [["catch-up", "x-0", 2, 2]]),
    ]


def write(folder: Path, lines: list[Event | str]) -> Path:
    path = folder / "history.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(text + "\n" for text in texts))
    return path


def judged(path: Path) -> bool | str:
    return check.examine(path, inline=True).verdict.valid


def test_the_history_itself_is_valid(tmp_path: Path) -> None:
    """The history that every case below changes in one place is valid."""
    assert judged(write(tmp_path, [*base()])) is True


def changed(row: int, **fields: Any) -> list[Event | str]:
    events: list[Event | str] = [*base()]
    events[row] = base()[row] | fields
    return events


def added(*more: Event | str, at: int = 8) -> list[Event | str]:
    return [*base()[:at], *more, *base()[at:]]


WRONG: dict[str, tuple[list[Event | str], int, str]] = {
    "an index that repeats": (changed(4, index=3), 5, "indices must increase"),
    "a negative index": (changed(0, index=-1), 1, "`$.index`"),
    "an index of more than 64 bits": (changed(7, index=1 << 64), 8, "`$.index`"),
    "a time that goes back": (changed(4, time_ns=1), 5, "order of their times"),
    "a negative time": (changed(0, time_ns=-1), 1, "`$.time_ns`"),
    "a time that is a fraction": (changed(0, time_ns=0.5), 1, "`$.time_ns`"),
    "a negative process": (changed(0, process=-2), 1, "`$.process`"),
    "a process of more than 31 bits": (changed(0, process=1 << 31), 1, "`$.process`"),
    "a process that is no number": (changed(0, process=True), 1, "`$.process`"),
    "a completion without an invocation": (
        added(event(8, 7, "ok", "poll", [["poll", {}]])),
        9,
        "process 7 completes an operation that it did not invoke",
    ),
    "a second completion": (
        added(event(8, 3, "ok", "catch-up", [["catch-up", "x-0", 2, 2]])),
        9,
        "process 3 completes an operation that it did not invoke",
    ),
    "a completion of another operation": (
        changed(5, f="txn"),
        6,
        "process 3 completes txn, but it invoked poll as event 4",
    ),
    "two invocations": (
        added(*(event(n, 9, "invoke", "poll", [["poll"]]) for n in (8, 9))),
        10,
        "process 9 invoked event 9 before its event 8 was completed",
    ),
    "a process that goes on after info": (
        added(event(8, 2, "invoke", "poll", [["poll"]])),
        9,
        "process 2 continues after its event 3 ended in info",
    ),
    "an acknowledgement of another key": (
        changed(1, value=[["send", "x-1", [0, 1]]]),
        2,
        "completes the send of value 1 to x-1",
    ),
    "an acknowledgement of two records for one": (
        changed(1, value=[["send", "x-0", [0, 1]], ["send", "x-0", [1, 1]]]),
        2,
        "completes the send of value 1 to x-0",
    ),
    "an acknowledgement of nothing": (
        changed(1, value=None),
        2,
        "process 1 succeeds without the send of value 1 to x-0, which its invocation, event 0,",
    ),
    "an acknowledgement of an empty list": (changed(1, value=[]), 2, "succeeds without the send"),
    "an acknowledgement of a part": (
        added(
            event(8, 9, "invoke", "txn", [["send", "x-0", 8], ["send", "x-0", 9]]),
            event(9, 9, "ok", "txn", [["send", "x-0", [2, 9]]]),
        ),
        10,
        "succeeds without the send of value 8 to x-0",
    ),
    "doubt about another record": (
        changed(3, value=[["send", "x-0", 3]]),
        4,
        "completes the send of value 3 to x-0",
    ),
    "a poll that succeeds without a value": (changed(5, value=None), 6, "without a poll, which"),
    "a poll that sends": (
        changed(5, value=[["poll", {"x-0": [[0, 1]]}], ["send", "x-0", [2, 5]]]),
        6,
        "completes the send of value 5 to x-0",
    ),
    "a catch-up of another key": (
        changed(7, value=[["catch-up", "x-1", 2, 2]]),
        8,
        "completes the catch-up of x-1",
    ),
    "a commit of another offset": (
        added(
            event(8, 9, "invoke", "commit", [["commit", "g", {"x-0": 1, "x-1": 5}, "sync"]]),
            event(9, 9, "ok", "commit", [["commit", "g", {"x-1": 5, "x-0": 2}, "sync"]]),
        ),
        10,
        "completes the commit of g",
    ),
    "another group's committed offsets": (
        added(
            event(8, 9, "invoke", "committed", [["committed", "g", {"x-0": None}]]),
            event(9, 9, "ok", "committed", [["committed", "h", {"x-0": 2}]]),
        ),
        10,
        "completes the committed of h",
    ),
    "a topic of another name": (
        added(
            event(8, 9, "invoke", "create-topic", [["create-topic", "y", 2]]),
            event(9, 9, "ok", "create-topic", [["create-topic", "z", 2]]),
        ),
        10,
        "completes the create-topic of z",
    ),
    "an init of another id": (
        added(
            event(8, 9, "invoke", "init", [["init", "a"]]),
            event(9, 9, "ok", "init", [["init", "b", [0, 0]]]),
        ),
        10,
        "completes another init than its invocation, event 8,",
    ),
    "a subscription of a group for one of keys": (
        added(
            event(8, 9, "invoke", "subscribe", ["x-0"]),
            event(9, 9, "ok", "subscribe", [["subscribe", "g", ["x"], {}]]),
        ),
        10,
        "completes another subscribe than its invocation, event 8,",
    ),
    "a subscription that succeeds without a value": (
        added(
            event(8, 9, "invoke", "subscribe", [["subscribe", "g", ["x"], {}]]),
            event(9, 9, "ok", "subscribe", None),
        ),
        10,
        "succeeds without the subscribe that its invocation, event 8,",
    ),
    "a polled record below 0": (
        changed(5, value=[["poll", {"x-0": [[0, 1], [-1, 2]]}]]),
        6,
        "offset of a record must not be negative",
    ),
    "a send below 0": (
        changed(1, value=[["send", "x-0", [-7, 1]]]),
        2,
        "send has the negative number -7",
    ),
    "a commit below 0": (
        added(
            event(8, 9, "invoke", "commit", [["commit", "g", {"x-0": -5}, "sync"]]),
            event(9, 9, "ok", "commit", [["commit", "g", {"x-0": -5}, "sync"]]),
        ),
        9,
        "commit has the negative offset -5",
    ),
    "a watermark below 0": (
        added(
            event(8, 9, "invoke", "watermarks", [["watermarks", "x-0"]]),
            event(9, 9, "ok", "watermarks", [["watermarks", "x-0", {"high": -3}]]),
        ),
        10,
        "watermarks has the negative offset -3",
    ),
    "a catch-up below its watermark": (
        changed(7, value=[["catch-up", "x-0", 1, 2]]),
        8,
        "succeeded at position 1, below its high watermark 2",
    ),
    "two events in a line": (
        [", ".join(json.dumps(e) for e in base()[:2]), *base()[2:]],
        1,
        "malformed",
    ),
    "a field that comes twice": (
        ['{"index": 0, ' + json.dumps(base()[0])[1:], *base()[1:]],
        1,
        'an object has two fields that are called "index"',
    ),
    "a key that comes twice in a poll": (
        [
            *base()[:5],
            json.dumps(base()[5]).replace('{"x-0":', '{"x-0": [[0, 1]], "x-0":'),
            *base()[6:],
        ],
        6,
        'an object has two fields that are called "x-0"',
    ),
    "a value that is no number": (
        changed(1, value=[["send", "x-0", [0, True]]]),
        2,
        "the value of a record must be a whole number",
    ),
    "a value of more than 64 bits": (
        changed(1, value=[["send", "x-0", [0, 1 << 64]]]),
        2,
        "more than 64 bits",
    ),
    "a micro-operation of another shape": (
        changed(0, value=[["send", "x-0"]]),
        1,
        'does not have the shape ["send", key, value]',
    ),
    "a value that is no list": (changed(0, value=7), 1, "a list of micro-operations"),
    "a key where none is named alone": (changed(0, value=["x-0"]), 1, "assign and subscribe"),
    "a micro-operation that is an object": (
        changed(0, value=[{"send": 1}]),
        1,
        "not a list of micro-operations",
    ),
    "an init without an id": (
        added(event(8, 9, "invoke", "init", [["init"]])),
        9,
        'does not have the shape ["init", transactional id',
    ),
    "a subscription with a list of options": (
        added(event(8, 9, "invoke", "subscribe", [["subscribe", "g", ["x"], [1]]])),
        9,
        "does not have the shape",
    ),
    "a crash without a status": (
        added(event(8, -1, "info", "crash", {"node": "b1", "status": None})),
        9,
        "the exit status of a crash",
    ),
    "a crash with a status in words": (
        added(event(8, -1, "info", "crash", {"node": "b1", "status": "bad"})),
        9,
        "the exit status of a crash",
    ),
    "a crash of no node": (
        added(event(8, -1, "info", "crash", {"node": 5, "status": 1})),
        9,
        "must name its node",
    ),
    "a fault whose id is a word": (
        added(event(8, -1, "invoke", "kill", {"id": "one"})),
        9,
        "the id of a fault",
    ),
    "a fault whose effect is neither": (
        added(event(8, -1, "info", "kill", {"id": 1, "effect": {"proved": "yes"}})),
        9,
        "proved, in a fault's effect, must be true or false",
    ),
    "a recovery that is neither": (
        added(event(8, -1, "info", "recover", {"recovered": "maybe"})),
        9,
        "true or false",
    ),
    "a silent node that is no name": (
        added(event(8, -1, "info", "unresponsive", {"node": 2, "for_s": 30.0})),
        9,
        "an unresponsive node must be named",
    ),
    "a silent node without a time": (
        added(event(8, -1, "info", "unresponsive", {"node": "broker-1"})),
        9,
        "for_s must be a number",
    ),
    "a value that is nested deeply": (
        added(
            json.dumps(event(8, -1, "info", "x", 0)).replace(
                ": 0}", ": " + "[" * 5000 + "]" * 5000 + "}"
            )
        ),
        9,
        "nested too deeply",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_contradicts_itself_is_refused(tmp_path: Path, case: str) -> None:
    """A contradiction is rejected, and one sentence names the line and the reason."""
    lines, line, message = WRONG[case]
    path = write(tmp_path, lines)
    with pytest.raises(BadHistory) as refused:
        judged(path)
    assert f"history.jsonl, line {line}: " in str(refused.value)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(BadHistory) as again:
        table_builder.of_history(history_file.read(path, lambda done: None), path, 2)
    assert str(again.value) == str(refused.value), "two threads refuse it for the same reason"


FINE: dict[str, list[Event | str]] = {
    "an index is left out": changed(7, index=70),
    "two events at one time": changed(4, time_ns=3_000_000),
    "an unknown offset as the protocol has it": changed(1, value=[["send", "x-0", [-1, 1]]]),
    "an unknown offset as librdkafka has it": changed(1, value=[["send", "x-0", [-1001, 1]]]),
    "a process goes on after a failure": [
        *added(
            event(8, 2, "invoke", "poll", [["poll"]]),
            event(9, 2, "fail", "poll", [["poll"]]),
            event(10, 2, "invoke", "poll", [["poll"]]),
        )[4:]
    ],
    "a catch-up below its watermark failed": added(
        event(8, 3, "invoke", "catch-up", [["catch-up", "x-0"]]),
        event(9, 3, "fail", "catch-up", [["catch-up", "x-0", 1, 2]]),
    ),
    "white space around names": [json.dumps(e, separators=(" , ", " : ")) for e in base()],
    "a text that looks like a field": changed(3, error='"index": 0, "index": 1'),
    "a field that is not known": changed(3, clock=7),
    "an invocation without a value": changed(0, value=None),
    "an invocation of an empty list": changed(0, value=[]),
    "an invocation that does not say what it sends": added(
        event(8, 9, "invoke", "txn", [["poll"], ["transform", "x", 3]]),
        event(9, 9, "ok", "txn", [["poll", {"x-0": [[0, 1]]}], ["send", "x-0", [2, 3]]]),
    ),
    "a transaction that ends in doubt in its middle": added(
        event(8, 9, "invoke", "txn", [["send", "x-0", 8], ["poll"], ["send", "x-0", 9]]),
        event(9, 9, "info", "txn", [["send", "x-0", [2, 8]]]),
    ),
    "a transaction that fails without a value": added(
        event(8, 9, "invoke", "txn", [["send", "x-0", 8], ["poll"]]),
        event(9, 9, "fail", "txn", None),
    ),
    "a failure that repeats the invocation": added(
        event(8, 9, "invoke", "send", [["send", "x-0", 8]]),
        event(9, 9, "fail", "send", [["send", "x-0", 8]]),
    ),
    "records that are acknowledged in another order": added(
        event(8, 9, "invoke", "send", [["send", "x-0", 8], ["send", "x-1", 9]]),
        event(9, 9, "ok", "send", [["send", "x-1", [0, 9]], ["send", "x-0", [2, 8]]]),
    ),
    "an operation that polls more often than it was asked to": added(
        event(8, 9, "invoke", "poll", [["poll"]]),
        event(9, 9, "ok", "poll", [["poll", {"x-0": [[0, 1]]}], ["poll", {}]]),
    ),
    "a poll with what it is told and commits": added(
        event(8, 9, "invoke", "poll", [["poll"]]),
        event(
            9,
            9,
            "ok",
            "poll",
            [
                ["commit", "g", {"x-0": 1}, "listener"],
                ["revoked", "g", 1, ["x-0"]],
                ["assigned", "g", 2, {"x-1": 0}],
                ["poll", {}],
            ],
        ),
    ),
    "an empty poll": added(
        event(8, 3, "invoke", "poll", [["poll"]]), event(9, 3, "ok", "poll", [["poll", None]])
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", FINE)
def test_a_near_miss_is_read(tmp_path: Path, case: str, threads: int) -> None:
    """A near miss of a contradiction is read like any other history."""
    history = history_file.read(write(tmp_path, FINE[case]), lambda done: None)
    table_builder.of_history(history, count=threads)


def test_an_acknowledgement_of_another_value_is_doubted(tmp_path: Path) -> None:
    """An acknowledgement of another value is believed, as by Jepsen, but makes the verdict
    unknown."""
    events = changed(1, value=[["send", "x-0", [0, 70]]])
    verdict = check.examine(write(tmp_path, events), inline=True).verdict
    assert verdict.valid is not True
    assert [reason for reason in verdict.unknown_because if "does not ask for" in reason] == [
        "event 1: process 1 completes the send of value 70 to x-0, which its invocation, event 0,"
        " does not ask for"
    ]


def test_doubted_acknowledgements_are_counted(tmp_path: Path) -> None:
    """Doubted acknowledgements are one reason, with the first one and the number of the others."""
    events: list[Event | str] = [
        event(number, 50 + number // 2, kind, "send", [["send", "x-0", value]])
        for number, (kind, value) in enumerate(
            (kind, asked if kind == "invoke" else [asked, asked + 10])
            for asked in range(3)
            for kind in ("invoke", "ok")
        )
    ]
    verdict = check.examine(write(tmp_path, events), inline=True).verdict
    (doubt,) = [reason for reason in verdict.unknown_because if "does not ask for" in reason]
    assert doubt.startswith("event 1: ")
    assert doubt.endswith(" (2 more like it)")
    history = history_file.read(tmp_path / "history.jsonl", lambda done: None)
    one, two = (table_builder.of_history(history, count=threads).doubts for threads in (1, 2))
    assert len(one) == 3
    assert one == two


def test_what_no_checker_knows_is_counted(tmp_path: Path) -> None:
    """An unknown operation is ignored with all that it holds, an unknown micro-operation alone."""
    path = write(
        tmp_path,
        added(
            event(8, 4, "invoke", "frobnicate", [["send", "x-0", 9]]),
            event(9, 4, "ok", "frobnicate", [["send", "x-0", [1, 9]]]),
            event(10, 4, "invoke", "txn", [["r", "x", {"a": 1}], ["r", "y"]]),
            event(11, 4, "ok", "txn", [["r", "x", 5], ["r", "y", 6]]),
        ),
    )
    verdict = check.examine(path, inline=True).verdict
    assert verdict.valid is True
    assert verdict.evidence["ignored"] == 3
    assert verdict.notes == (
        "operations that no checker knows were ignored: frobnicate (1), r (2)",
    )


def test_what_no_checker_knows_is_counted_in_edn_too(tmp_path: Path) -> None:
    """Unknown operations are counted in EDN, too."""
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :invoke, :process 0, :f :send, :value [[:send 1 5]]}\n"
        "{:type :ok, :process 0, :f :send, :value [[:send 1 [0 5]]]}\n"
        "{:type :invoke, :process 1, :f :poll, :value [[:poll] [:r 7]]}\n"
        "{:type :ok, :process 1, :f :poll, :value [[:poll {1 [[0 5]]}] [:r 7]]}\n"
        "{:type :invoke, :process 1, :f :list-topics, :value nil}\n"
        "{:type :ok, :process 1, :f :list-topics, :value [1]}\n"
    )
    verdict = check.examine(path, inline=True).verdict
    assert verdict.evidence["ignored"] == 2
    assert verdict.notes == (
        "operations that no checker knows were ignored: list-topics (1), r (1)",
    )


def test_a_position_above_the_high_watermark_proves_nothing(tmp_path: Path) -> None:
    """A position above the high watermark proves nothing: that leader does not know the log's
    end."""
    verdict = check.examine(
        write(tmp_path, changed(7, value=[["catch-up", "x-0", 3, 2]])), inline=True
    ).verdict
    assert verdict.valid == "unknown"
    assert verdict.unknown_because == ("not read to the end: x-0",)
