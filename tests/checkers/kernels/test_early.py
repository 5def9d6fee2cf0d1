"""Records that were read before they were sent; what follows from their place is folded."""

from typing import Any

import pytest

from checkers import inline
from checkers.kernels import history_kernels
from checkers.kernels.early import early_reads
from checkers.kernels.found import Found


def standing(histories: Any, text: str) -> list[Found]:
    tables = histories.tables(text)
    reports = inline.judge(tables, lambda done: None)
    return history_kernels.judge(
        tables, [f for report in reports.values() for f in report.found]
    ).found


@pytest.mark.parametrize(
    ("text", "anomalies"),
    [
        ("p:x=a@0 s:x=a@0", ["G1c-realtime"]),
        (">s:x=a p:x=a@0 <s:x=a@0", []),  # the send had begun
        (">p: >s:x=a <p:x=a@0 <s:x=a@0", []),  # the poll had not ended
        ("p3:x=a@0 s3:x=a@0", ["G1c-process"]),
        ("p:x=a@0 s?:x=a", ["G1c-realtime"]),
        ("p:x=a@0 s!:x=a", []),  # an aborted read, whenever it was
        ("p:x=a@0 t1:+x=a@0", ["G1c-realtime"]),
        ("p?:x=a@0 s:x=a@0", ["G1c-realtime"]),  # a poll in doubt delivers, too
    ],
)
def test_early_reads(histories: Any, text: str, anomalies: list[str]) -> None:
    """A read is early if the poll ended before the send began."""
    assert [f.anomaly for f in early_reads(histories.log(text))] == anomalies


def test_each_further_reader_is_folded(histories: Any) -> None:
    """Further early readers of a record are folded into one finding."""
    (found,) = early_reads(histories.log("p:x=a@0 p8:x=a@0 s:x=a@0"))
    assert (found.ops, found.folded) == ((1, 5), 1)


@pytest.mark.parametrize(
    "text",
    [
        "t1:+x=a@1 p3:x=b@0,x=a@1 s2:x=b@0 p9:x=b@0,x=a@1",
        "t1:+x=a@1 t2:+x=c@2 p3:x=b@0,x=a@1,x=c@2 s2:x=b@0 p9:x=b@0,x=a@1,x=c@2",
    ],
)
def test_innocent_transactions_are_not_blamed(histories: Any, text: str) -> None:
    """A transaction is not blamed if its record is only behind one that was read too early."""
    (found,) = standing(histories, text)
    assert (found.anomaly, found.value) == ("G1c-realtime", 2)
    assert found.folded > 0


@pytest.mark.parametrize(
    ("text", "anomalies"),
    [
        # b is read, and then a is sent and is before it
        ("s1?:x=b p:x=b@1 s2:x=a@0 p8:x=a@0,x=b@1", ["realtime-order"]),
        (">s2:x=a s1?:x=b p:x=b@1 <s2:x=a@0 p8:x=a@0,x=b@1", []),
    ],
)
def test_a_read_record_is_in_the_log(histories: Any, text: str, anomalies: list[str]) -> None:
    """A record that is sent after another was read is behind that one, whether or not it was
    acknowledged."""
    assert [f.anomaly for f in standing(histories, text)] == anomalies


@pytest.mark.parametrize(
    ("text", "anomalies"),
    [
        # process 1's send begins as event 4; 2 reads it and is open after that; 3 reads 2's record
        # and is open after that, too; yet 9 had read 3's record by event 3
        (
            ">t2:|+y=b >t3:|+z=c >p9: <p9:z=c@0 s1:x=a@0 <t2:x=a@0|+y=b@0 <t3:y=b@0|+z=c@0",
            ["dirty-read"],
        ),
        (
            ">t2:|+y=b >t3:|+z=c >p9: s1:x=a@0 <t2:x=a@0|+y=b@0 <t3:y=b@0|+z=c@0 <p9:z=c@0",
            [],
        ),
    ],
)
def test_a_chain_of_readers_is_open_together(
    histories: Any, text: str, anomalies: list[str]
) -> None:
    """A transaction that read another's record was open until that other one had been committed."""
    assert [f.anomaly for f in standing(histories, text)] == anomalies
