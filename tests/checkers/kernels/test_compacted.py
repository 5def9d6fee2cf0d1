"""Records that a later one of their record key may have replaced.

``a7`` is the seventh record, of key a; ``A7`` is a tombstone of that key.
"""

import dataclasses
import re
from typing import Any

import msgspec
import pytest

from checkers.anomalies import is_legal
from checkers.expectations import Contract
from checkers.kernels.compacted import stale_keys
from checkers.kernels.key import judge
from checkers.kernels.log import Log
from checkers.kernels.loss import lost_writes
from checkers.kernels.polls import poll_order
from model import record_keys

_RECORD = re.compile(r"(?<==)([A-Za-z])(\d+)")


def log_of(histories: Any, text: str) -> Log:
    def value(record: re.Match[str]) -> str:
        letter, number = record.groups()
        key = ord(letter.lower()) - ord("a")
        return str(record_keys.value_of(int(number), key, deletes=letter.isupper()))

    log: Log = histories.log(_RECORD.sub(value, text))
    return dataclasses.replace(log, is_compacted=True)


def told(value: int) -> str:
    letter = chr(record_keys.key_of(value) + ord("a"))
    return f"{letter.upper() if record_keys.deletes(value) else letter}{value // 1000}"


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("s:x=a1@0 s:x=a2@1 p:x=a2@1 c:x@2", []),
        ("s:x=a1@0 s:x=b2@1 p:x=b2@1 c:x@2", ["a1"]),  # another record key replaces nothing
        ("s:x=a1@0 s:x=a2@1 p:x=a1@0 c:x@2", ["a2"]),  # the last record stays
        ("s:x=a1@0 s:x=a2@1 p: c:x@2", ["a2"]),  # only the last is lost
        ("s:x=a1@0 s!:x=a2@1 s1:x=b3@2 p:x=b3@2 c:x@3", ["a1"]),  # a2 certainly failed
        ("s:x=a1@0 t!:+x=a2|abort s1:x=b3@4 p:x=b3@4 c:x@5", ["a1"]),  # a2 was aborted
        ("s:x=a1@0 s?:x=a2 s1:x=b3@2 p:x=b3@2 c:x@3", ["a1"]),  # a2 has no known place
        ("s:x=a1@0 s?:x=a2 s1:x=b3@2 p:x=b3@2", []),  # the reads may end before a2
        ("s:x=a1@0 s?:x=a2 s1:x=a3@2 p:x=a3@2 c:x@3", []),
        ("s:x=a1@0 s:x=A2@1 p:x=A2@1 c:x@2", []),
        ("s:x=a1@0 s:x=A2@1 p: c:x@2", ["A2 deleted"]),
        ("s:x=a1@0 s?:x=A2 p: c:x@2", ["a1 deleted"]),
        ("s:x=a1@0 s:x=a2 p:x=a1@0 c:x@2", ["a2"]),  # a2 has no known place
        ("s:x=a1 s:x=a2@1 p:x=a2@1 c:x@2", []),
        ("s:x=a1@0 s:x=a2 p:x=a1@0 s:x=b3@2 c:x@3", ["b3", "a2"]),
    ],
)
def test_only_what_is_last_of_its_key_can_be_lost(
    histories: Any, text: str, lost: list[str]
) -> None:
    """Only the last record of a record key can be lost; a later one excuses those before it, if it
    is there."""
    found = lost_writes(log_of(histories, text))
    assert sorted(f"{told(f.value or 0)} {f.variant}".strip() for f in found) == sorted(lost)


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        # a reader passed a2 before any later write of a began
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a1@0,x=b3@2", ["stale-key a2"]),
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=b3@2", ["stale-key a2"]),
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a2@1,x=b3@2", []),
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a1@0 s:x=a4@3 p:x=b3@2,x=a4@3", []),  # a4 replaced it
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a1@0,x=b3@2 s:x=a4@3 p:x=a4@3", ["stale-key a2"]),
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a1@0 s1?:x=a4 p:x=b3@2", []),  # a4 may have replaced it
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a1@0 s1!:x=a4 p:x=b3@2", ["stale-key a2"]),  # a4 failed
        ("s:x=a1@0 s:x=a2@1 p:x=a1@0", []),  # no reader came as far as a2
        ("s:x=a1@0 s:x=a2@1 p:x=a1@0 c:x@2", ["stale-key a2"]),
        ("s:x=a1@0 s:x=a2@1 p:x=a1@0 a:y a:x s:x=b3@2 p:x=a2@1,x=b3@2", []),  # read again
        ("s:x=a1@0 s?:x=a2 s1:x=b3@2 p:x=a1@0,x=b3@2", []),  # a2 may not be there …
        ("s:x=a1@0 s?:x=a2 s1:x=b3@2 p:x=a2@1 p2:x=a1@0,x=b3@2", ["stale-key a2"]),  # … a2 is there
        # tombstones
        ("s:x=a1@0 s:x=A2@1 s:x=b3@2 p:x=a1@0,x=b3@2", ["resurrected-key A2"]),
        ("s:x=a1@0 s:x=A2@1 s:x=b3@2 p:x=b3@2", []),  # correctly, it holds nothing
        ("s:x=A1@0 s:x=A2@1 s:x=b3@2 p:x=A1@0,x=b3@2", []),
        ("s:x=a1@0 s:x=A2@1 s:x=b3@2 p:x=a1@0,x=A2@1,x=b3@2", []),
        ("s:x=a1@0 s:x=A2@1 s:x=b3@2 s:x=a4@3 p:x=a1@0,x=b3@2", []),
        ("s:x=a1@0 s:x=A2@1 p2:x=A2@1 p:x=a1@0 c:x@2", ["resurrected-key A2"]),
        # a reader within transactions goes back
        ("s:x=a1@0 s:x=a2@1 s:x=b3@2 t:x=a1@0,x=b3@2", []),
    ],
)
def test_readers_get_to_know_what_is_last(histories: Any, text: str, stale: list[str]) -> None:
    """A reader that passes a record has received it, or one that replaces it."""
    found = stale_keys(log_of(histories, text))
    assert [f"{f.anomaly} {told(f.value or 0)}" for f in found] == stale


def test_what_has_no_key_is_replaced_by_nothing(histories: Any) -> None:
    """A record without a record key is replaced by none, so it has to be delivered."""
    one, two = (record_keys.value_of(n, record_keys.NO_KEY, deletes=False) for n in (1, 2))
    log = histories.log(f"s:x={one}@0 s:x={two}@1 p:x={two}@1 c:x@2")
    (lost,) = lost_writes(dataclasses.replace(log, is_compacted=True))
    assert (lost.value, lost.variant) == (one, "")
    log = histories.log(f"s:x={one} s:x={two}@1 p:x={two}@1 c:x@2")
    assert [f.value for f in lost_writes(dataclasses.replace(log, is_compacted=True))] == [one]


def test_other_logs_are_not_looked_at(histories: Any) -> None:
    """In a log that is not compacted every record stays, and none is checked for a record key."""
    log = log_of(histories, "s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a1@0,x=b3@2")
    assert stale_keys(dataclasses.replace(log, is_compacted=False)) == []


def test_a_tombstone_tells_its_age(histories: Any) -> None:
    """The age of a tombstone counts from its send to the reader's passing, or to the end of all
    reads."""
    log = log_of(histories, "s:x=a1@0 s:x=A2@1 p:x=a1@0 z:100 c:x@2")
    (found,) = stale_keys(log)
    assert found.also == (105_000,)
    (lost,) = lost_writes(log)
    assert lost.also == (105_000,)


def test_a_hole_is_no_skip(histories: Any) -> None:
    """A gap in a compacted log is no skip, but what is read is in order."""
    log = log_of(histories, "s:x=a1@0 s:x=b2@1 s:x=a3@2 p:x=a1@0,x=a3@2 p2:x=a3@2 p2:x=b2@1")
    assert [f.anomaly for f in poll_order(log)] == ["nonmonotonic-poll"]


def test_a_record_that_nobody_has_is_one_finding(histories: Any) -> None:
    """A lost record and the reader that did not receive it are one finding."""
    log = log_of(histories, "s:x=a1@0 s:x=a2@1 s:x=b3@2 p:x=a1@0,x=b3@2 c:x@3")
    (found,) = judge(log).found
    assert (found.anomaly, told(found.value or 0), found.folded) == ("lost-write", "a2", 1)


def test_many_readers_are_one_finding(histories: Any) -> None:
    """Many readers that miss one record are one finding, with the first of them."""
    text = "s:x=a1@0 s:x=a2@1 s:x=b3@2 p2:x=a1@0,x=b3@2 p3:x=a1@0,x=b3@2 p4:x=a1@0,x=a2@1"
    (found,) = stale_keys(log_of(histories, text))
    assert (found.ops, found.folded) == ((3, 7), 1)
    assert found.why == (
        "record key 0 was written by value 2000 at offset 1, which was acknowledged at 3.000 s;"
        " process 2 had read past it by 7.000 s and received value 1000 at offset 0 for that key,"
        " although no client had begun to write it again"
    )


def test_a_history_tells_which_topics_are_compacted(histories: Any) -> None:
    """The creation of a topic says whether it is compacted."""
    create = [["create-compacted", "x", 1]], [["create-topic", "y", 1]]
    ops = histories.events("s:x-0=1000@0,y-0=1@0")
    made = [
        msgspec.structs.replace(op, index=n + 4, time_ns=op.time_ns + 4) for n, op in enumerate(ops)
    ]
    asked = [
        type(ops[0])(index=2 * n + m, time_ns=2 * n + m, process=5, type=kind, f="create-topic",
                     value=value)
        for n, value in enumerate(create)
        for m, kind in enumerate(("invoke", "ok"))
    ]  # fmt: skip
    logs = {log.key: log.is_compacted for log in histories.tables([*asked, *made]).logs()}
    assert logs == {"x-0": True, "y-0": False}


def test_what_a_lost_record_has_replaced_is_not_missed(histories: Any) -> None:
    """A record that a lost record replaced is not missed."""
    log = log_of(histories, "s:x=a1@0 s:x=A2@1 s:x=b3@2 p:x=b3@2 c:x@3")
    assert [(f.anomaly, told(f.value or 0)) for f in judge(log).found] == [("lost-write", "A2")]


PASSED = "s:x=a1@0 s:x=A2@1 s:x=b3@2 "
STALE = "s:x=a1@0 s:x=b3@2 p7:x=b3@2 s?:x=A4 z:40 p:x=b3@2 c:x@3"


@pytest.mark.parametrize(
    ("text", "acks", "illegal"),
    [
        # a reader passed the tombstone at once; the final reader came when it might be removed
        (PASSED + "p7:x=a1@0,x=b3@2 z:40 p:x=b3@2 c:x@3", "all", ["resurrected-key"]),
        (PASSED + "z:40 p7:x=a1@0,x=b3@2 z:40 p:x=b3@2 c:x@3", "all", []),
        # of two readers, the one that came first decides, whatever its process
        (PASSED + "p7:x=a1@0,x=b3@2 z:40 p6:x=a1@0,x=b3@2", "all", ["resurrected-key"]),
        (PASSED + "z:40 p7:x=a1@0,x=b3@2 p6:x=a1@0,x=b3@2", "all", []),
        # a1 was missed before the tombstone that may have deleted it later
        (STALE, "all", ["stale-key"]),
        (STALE.replace("p7:x=b3@2 s?:x=A4", "s?:x=A4 p7:x=b3@2"), "all", []),
        # with acks=1, a tombstone may be lost only if it was never read
        (PASSED + "p7:x=a1@0,x=A2@1,x=b3@2 p:x=b3@2 c:x@3", "1", ["lost-write"]),
        (PASSED + "p7:x=a1@0,x=A2@1,x=b3@2 z:40 p:x=b3@2 c:x@3", "1", []),
        (PASSED + "p:x=b3@2 c:x@3", "1", []),
    ],
)
def test_a_tombstone_that_may_be_removed_hides_nothing(
    histories: Any, text: str, acks: str, illegal: list[str]
) -> None:
    """What a reader has missed is judged by the age that the tombstone had then."""
    contract = Contract(acks=acks, idempotent=acks == "all", delete_retention_ms=20_000)
    found = [f for f in judge(log_of(histories, text)).found if not is_legal(f, contract)]
    assert [f.anomaly for f in found] == illegal
