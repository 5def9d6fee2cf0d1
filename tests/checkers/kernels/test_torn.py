from typing import Any

import pytest

from checkers.anomalies import is_legal
from checkers.expectations import Contract
from checkers.kernels import key, torn
from checkers.kernels.found import Found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # b of y is below what was read of y and was never read; a of x is there
        ("t:+x=a@0,+y=b@0 s:y=c@1 p:x=a@0 p:y=c@1", ["torn-transaction y=2 +1 but [1]"]),
        ("t:+x=a@0,+y=b@0 s:y=c@1 p:x=a@0 p:y=b@0,y=c@1", []),
        # no reader came as far as that
        ("t:+x=a@0,+y=b@0 s:y=c@1 p:x=a@0", []),
        # it is lost whole, so it is not torn
        (
            "t:+x=a@0,+y=b@0 s:y=c@1 s:x=d@1 p:x=d@1 p:y=c@1",
            ["lost-write x=1", "lost-write y=2"],
        ),
        # in doubt, until a part of it is read
        ("t5?:+x=a@0,+y=b@0 s:y=c@1 p:y=c@1", []),
        ("t5?:+x=a@0,+y=b@0 s:y=c@1 p:y=c@1 p:x=a@0", ["torn-transaction y=2 +1 but [1]"]),
        # the offset of y's record is unknown, but the log of y was read to its end
        (
            "t5?:+x=a,+y=b s:y=c@1 p:y=c@1 c:y@2 p:x=a@0",
            ["torn-transaction y=2 +1 but [1]"],
        ),
        # a plain operation of several records may be written in part
        ("s?:x=a@0,y=b s1:y=c@1 p:y=c@1 c:y@2 p:x=a@0", []),
        ("s:x=a@0,y=b@0 s1:y=c@1 p:y=c@1 p:x=a@0", ["lost-write y=2"]),
        # within one partition, and with what it has folded
        ("t:+x=a@0,+x=b@1,+x=c@2 s:x=d@3 p:x=a@0,x=d@3", ["torn-transaction x=2 +3 but [1]"]),
    ],
)
def test_torn_transactions(histories: Any, text: str, found: list[str]) -> None:
    """What is lost of a transaction that is partly there is one finding."""
    tables = histories.tables(text)
    of_keys = [f for log in tables.logs() for f in key.judge(log).found]
    told = [
        f"{f.anomaly} {f.key}={f.value}"
        + (f" +{f.folded} but {[*f.also]}" if f.anomaly == "torn-transaction" else "")
        for f in torn.kernel(tables, of_keys)
        if f.anomaly in ("torn-transaction", "lost-write")
    ]
    assert told == found


def test_a_torn_transaction_names_both_sides(histories: Any) -> None:
    """A torn transaction names its writer, a reader of a part of it, and a reader that passed the
    rest."""
    tables = histories.tables("t:+x=a@0,+y=b@0 s:y=c@1 p:x=a@0 p3:y=c@1")
    of_keys = [f for log in tables.logs() for f in key.judge(log).found]
    (found,) = [f for f in torn.kernel(tables, of_keys) if f.anomaly == "torn-transaction"]
    assert found.ops == (1, 5, 7)
    assert found.why == (
        "process 9 read value 1 of x at 5.000 s, from a transaction of process 9; of its record in"
        " y this is known: value 2 was acknowledged to process 9 at offset 0 at 1.000 s; process 3"
        " read the later offset 1 at 7.000 s, and no process ever read 2"
    )


def of_doubt(histories: Any, reads: str) -> list[Found]:
    """The torn transactions of a history with one in doubt, of which c of z is always there."""
    tables = histories.tables(
        f"t?:+x=a|+y=b|+z=c s3:x=g@0 s4:y=h@9 {reads}p8:z=c@0,x=g@0 p5:y=h@9 c8:x@1 c5:y@10"
    )
    of_keys = [f for log in tables.logs() for f in key.judge(log).found]
    found = torn.kernel(tables, of_keys)
    assert "lost-write" not in {f.anomaly for f in found}
    return [f for f in found if f.anomaly == "torn-transaction"]


def test_a_record_that_was_read_and_vanished_is_no_doubt(histories: Any) -> None:
    """Readers of uncommitted records may find a transaction in doubt torn, but what they have read
    of it stays, wherever the first loss is."""
    contract = Contract(read_committed=False)
    (never,) = of_doubt(histories, "")
    assert is_legal(never, contract)
    found = of_doubt(histories, "p7:y=b@0 ")
    assert [f.variant for f in found] == ["proven", "read"]
    assert [is_legal(f, contract) for f in found] == [True, False]


def test_a_torn_transaction_with_a_tombstone_has_its_age(histories: Any) -> None:
    """The age comes before the values that are there, and is the least of all."""
    tables = histories.tables("t:+x=a@0,+y=b@0,+y=c@1 s:y=d@2 p:x=a@0 p:y=d@2")
    of_keys = [f for log in tables.logs() for f in key.judge(log).found]
    lost = [
        Found(
            anomaly=f.anomaly, key=f.key, value=f.value, ops=f.ops, variant="deleted", also=(age,)
        )
        for age, f in zip((2000, 500), of_keys, strict=True)
    ]
    (found,) = torn.kernel(tables, lost)
    assert (found.value, found.also) == (3, (500, 1))
