from typing import Any

import pytest

from checkers.kernels import history_kernels, key


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # a of x was read before the transaction can have been committed, and b of y is missing
        (
            ">t1:+x=a@0,+y=b@0|.2500 p:x=a@0 <t1?:+x=a@0,+y=b@0|.2500 s:y=c@1 p:y=c@1",
            ["dirty-read 1 +1"],
        ),
        # it was acknowledged, so both findings stand
        (
            ">t1:+x=a@0,+y=b@0|.2500 p:x=a@0 <t1:+x=a@0,+y=b@0|.2500 s:y=c@1 p:y=c@1",
            ["dirty-read 1", "torn-transaction 2 +1"],
        ),
        # it was read late enough
        (
            ">t1:+x=a@0,+y=b@0|.2000 p:x=a@0 <t1?:+x=a@0,+y=b@0|.2000 s:y=c@1 p:y=c@1",
            ["torn-transaction 2 +1"],
        ),
    ],
)
def test_what_was_read_too_early_proves_nothing(
    histories: Any, text: str, found: list[str]
) -> None:
    """A read of an open transaction does not prove it, so its missing records may have been
    aborted."""
    tables = histories.tables(text)
    told = history_kernels.judge(tables, [f for log in tables.logs() for f in key.judge(log).found])
    assert (
        sorted(f"{f.anomaly} {f.value}" + (f" +{f.folded}" if f.folded else "") for f in told.found)
        == found
    )
