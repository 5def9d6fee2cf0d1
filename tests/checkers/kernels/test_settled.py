"""Settled blocks, in which the checkers find nothing, whatever is around them."""

from typing import Any

import pytest

from checkers.kernels.settled import is_settled


@pytest.mark.parametrize(
    "text",
    [
        "s:x=a@0,x=b@1 s2:x=c@2 p1:x=a@0,x=b@1 p1:x=c@2",
        "t0:+x=a@0 t2:+x=b@2 p1:x=a@0,x=b@2",  # transactions
        "s:x=a@0 s!:x=b p1:x=a@0",  # a record that failed
        "s:x=a@0 p1:x=a@0 p2:x=a@0",
    ],
)
def test_records_that_were_read_in_order_are_settled(histories: Any, text: str) -> None:
    """Transactions and records that failed make no difference."""
    assert is_settled(histories.log(text))


@pytest.mark.parametrize(
    "text",
    [
        "s:x=a@0",  # not read
        "p1:x=a@0",  # not sent
        "s?:x=a p1:x=a@0",  # in doubt
        "s:x=a p1:x=a@0",  # acknowledged without an offset
        "s!:x=a p1:x=a@0",  # read though it failed
        "s:x=a@0 s!:x=b s!:x=b p1:x=a@0",
        "s:x=a@1 s:x=b@0 p1:x=b@0,x=a@1",  # a process's own order
        "s:x=a@0 s:x=b@1 p1:x=b@1,x=a@0",
        "s:x=a@0 s:x=b@1 p1:x=a@0,x=b@1 p2:x=a@0",  # a reader that read only some
        "s:x=a@0 p1:x=a@0 p1:x=a@0",
        "s:x=a@0 p1:x=a@1",
        "p1:x=a@0 s:x=a@0",  # read early
        "s:x=a@0 z:31 p1:x=a@0",  # read late
        "s:x=a@0 t2:+x=b@1 p1:x=a@0,x=b@1",  # only some of transactions
    ],
)
def test_anything_else_is_not_settled(histories: Any, text: str) -> None:
    """Where one of the conditions does not hold, all records are judged."""
    assert not is_settled(histories.log(text))
