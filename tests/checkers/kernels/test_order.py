from typing import Any

import pytest

from checkers.anomalies import is_legal
from checkers.expectations import Contract
from checkers.kernels.order import kernel, nonmonotonic_sends, realtime_order


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s:x=a@0 s:x=b@1", []),
        ("s:x=a@1 s:x=b@0", ["nonmonotonic-send 2@0"]),
        ("s:x=a@1 s1:x=b@0", []),  # two processes: a case for real time
        ("s:x=a@0,x=b@1", []),
        ("s:x=a@1,x=b@0", ["int-nonmonotonic-send 2@0"]),
        ("s:x=a@4,x=b@7", []),  # records of others may come between
        ("s:x=a s:x=b p:x=b@0,x=a@1", ["nonmonotonic-send 2@0"]),  # a poll shows the places
        ("s:x=a@1 s!:x=b@0 s:x=c@2", []),  # what failed has no place
        ("s:x=a@1 s?:x=b@0", []),  # a place in doubt …
        ("s:x=a@1 s?:x=b@0 p:x=b@0", ["nonmonotonic-send 2@0"]),  # … that a poll confirms
        ("s:x=c@3,x=d@4 s:x=a@1,x=b@2", ["nonmonotonic-send 1@1"]),  # the first place counts
        ("s:x=a@1 a0:y s:x=b@0", ["nonmonotonic-send 2@0"]),  # its reads do not matter
        ("s:x=a@1 s:y=b@0", []),
    ],
)
def test_nonmonotonic_sends(histories: Any, text: str, found: list[str]) -> None:
    """The records of a process are in the log in the order in which it sent them."""
    results = nonmonotonic_sends(histories.log(text))
    assert [f"{f.anomaly} {f.value}@{f.offset}" for f in results] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s:x=a@0 s1:x=b@1", []),
        ("s:x=a@1 s1:x=b@0", ["2@0 against (1, 2)"]),
        (">s1:x=b s:x=a@1 <s1:x=b@0", []),  # concurrent: any order will do
        ("s?:x=a@1 s1:x=b@0 p:x=a@1", []),  # a was never acknowledged
        ("s:x=a@1 s1?:x=b p:x=b@0", ["2@0 against (1, 2)"]),  # b landed before it was sent
        ("s:x=a@1 s1:x=b p:x=b@0", ["2@0 against (1, 2)"]),
        # one record too high contradicts three; one too low, three others: each is one finding
        ("s:x=a@9 s1:x=b@0 s2:x=c@1 s3:x=d@2", ["1@9 against (1, 2)"]),
        ("s:x=a@1 s1:x=b@2 s2:x=c@3 s3:x=d@0", ["4@0 against (3, 4)"]),
    ],
)
def test_realtime_order(histories: Any, text: str, found: list[str]) -> None:
    """A record that was acknowledged before another was sent is before it; the smaller side is
    blamed."""
    results = realtime_order(histories.log(text))
    assert [f"{f.value}@{f.offset} against {f.also}" for f in results] == found


def test_one_misplaced_record_is_told_once(histories: Any) -> None:
    """A record that contradicts its process's order is not reported again for real time."""
    found = kernel(histories.log("s:x=a@1 s1:x=b@2 s:x=c@0"))
    assert [f.anomaly for f in found] == ["nonmonotonic-send"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # a is higher than c, but only an acknowledgement shows it
        ("s1:x=c@7 s2:x=a@10 s3:x=b@5 p:x=b@5,x=c@7", ["2@5 (3, 2) "]),
        ("s1:x=c@7 s2:x=a@10 s3:x=b@8 p:x=c@7,x=b@8", ["2@8 (1, 2) ack"]),
        ("s1:x=c@7 s2:x=a@10 s3:x=b@5 p:x=b@5", ["2@5 (1, 2) ack"]),
        # d is too low for a alone, and b for c
        (
            "s1:x=c@7 s2:x=a@10 s3:x=b@5,x=d@8 p:x=b@5,x=c@7,x=d@8",
            ["2@5 (3, 2) ", "4@8 (1, 4) ack"],
        ),
    ],
)
def test_a_record_that_may_be_lost_hides_no_other(
    histories: Any, text: str, found: list[str]
) -> None:
    """A record that contradicts one that was read is out of place, whatever else it contradicts."""
    results = realtime_order(histories.log(text))
    assert [f"{f.value}@{f.offset} {f.also} {f.variant}" for f in results] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # retries may reorder what one operation sent, but not move it before what was acknowledged
        ("s1:x=c@9 s:x=a@5,x=b@4 p:x=b@4,x=a@5,x=c@9", ["int-nonmonotonic-send", "realtime-order"]),
        ("s1:x=c@3 s:x=a@5,x=b@4 p:x=c@3,x=b@4,x=a@5", ["int-nonmonotonic-send"]),
        # a may be lost, which says nothing about c and b
        (
            "s1:x=c@7 s:x=a@6 s:x=b@5 p:x=b@5,x=c@7",
            ["nonmonotonic-send ack", "realtime-order"],
        ),
        ("s1:x=c@7 s:x=a@6 s:x=b@5 p:x=b@5,x=a@6,x=c@7", ["nonmonotonic-send"]),
    ],
)
def test_a_record_is_told_again_where_a_contract_may_excuse_its_own_process(
    histories: Any, text: str, found: list[str]
) -> None:
    """What a contract may permit of one process does not hide what contradicts real time."""
    results = kernel(histories.log(text))
    assert sorted({f"{f.anomaly} {f.variant}".strip() for f in results}) == found


def test_retries_do_not_reorder_operations(histories: Any) -> None:
    """Without idempotence, requests of one operation may be reordered: its process had the
    acknowledgements of earlier operations before."""
    contract = Contract(idempotent=False)
    within, across = "s:x=a@1,x=b@0", "s:x=a@1 s:x=b@0"
    assert all(is_legal(f, contract) for f in kernel(histories.log(within)))
    assert not any(is_legal(f, contract) for f in kernel(histories.log(across)))
