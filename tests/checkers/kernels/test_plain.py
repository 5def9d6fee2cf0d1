"""Plain logs, in which the checkers of records find nothing."""

import random
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from checkers.kernels import key, order
from checkers.kernels.found import Found
from checkers.kernels.log import Log
from checkers.kernels.plain import is_plain


@pytest.mark.parametrize(
    "text",
    [
        "s:x=a@0 p1:x=a@0",
        "s:x=a@0,x=b@1 s2:x=c@2 p1:x=a@0,x=b@1 p1:x=c@2",
        "s:x=a@0 p1:x=a@0 s:x=b@4 p1:x=b@4 c1:x@5",  # transactions' markers take offsets, too
        "s:x=a@0 s:x=b@1 p1:x=a@0 p2:x=a@0,x=b@1",  # two readers, one of them behind
        "s:x=a@0 p1:x=a@0 a2:x p2:x=a@0 c2:x@1",
    ],
)
def test_records_that_were_sent_once_and_read_in_order_are_plain(histories: Any, text: str) -> None:
    """A log is plain where each record was acknowledged and read at its offset, in order."""
    assert is_plain(histories.log(text))


@pytest.mark.parametrize(
    "text",
    [
        "s:x=a@0",  # not read
        "p1:x=a@0",  # not sent
        "s?:x=a p1:x=a@0",  # in doubt
        "s:x=a p1:x=a@0",  # acknowledged without an offset
        "s:x=a@0 s!:x=b p1:x=a@0",
        "s:x=a@0 s:x=b@1 p1:x=a@0",
        "s:x=a@0 s:x=b@1 p1:x=b@1",
        "s:x=a@0 s:x=b@1 p1:x=b@1 p2:x=a@0,x=b@1",  # from the middle
        "s:x=a@0 s:x=b@1 p1:x=b@1,x=a@0",
        "s:x=a@1 s:x=b@0 p1:x=b@0,x=a@1",  # acknowledged in another order
        "s:x=a@0 p1:x=a@0,x=a@0",
        "s:x=a@0 p1:x=a@0 p1:x=a@0",
        "s:x=a@0 p1:x=a@1",
        "s:x=a@0 s:x=b@1 p1:x=a@0,x=b@1,x=a@2",
        "p1:x=a@0 s:x=a@0",  # read early
        "s:x=a@0 z:31 p1:x=a@0",  # read late
        "t:x=a@0 p1:x=a@0",  # a transaction
        "s:x=a@0 p1:x=a@0 a2:x c2:x@1",  # the final reader saw nothing
    ],
)
def test_anything_else_is_not_plain(histories: Any, text: str) -> None:
    """Where one of the conditions does not hold, the checkers are asked."""
    assert not is_plain(histories.log(text))


def test_the_checkers_of_records_find_nothing_in_a_plain_log(histories: Any) -> None:
    """Of random logs that are right or nearly right, each plain one is in order for them all."""
    rng = random.Random(1)
    plain, faulty = 0, 0
    for _ in range(400):
        text = " ".join(_tokens(rng))
        for log in histories.tables(text).logs():  # none where the same value is sent twice
            found = list(_found(log))
            assert not (found and is_plain(log)), text
            plain, faulty = plain + is_plain(log), faulty + bool(found)
    assert plain > 50
    assert faulty > 50


def _found(log: Log) -> Iterator[Found]:
    kernels = [*key.BASIC.values(), *key.DERIVED.values(), order.send_skips]
    return chain.from_iterable(kernel(log) for kernel in kernels)


def _tokens(rng: random.Random) -> Iterator[str]:
    """A few sends by two processes and reads by two others, perhaps with one mistake."""
    records = [f"x={value}@{offset}" for offset, value in enumerate("abcd"[: rng.randint(1, 4)])]
    writes = [(f"s{rng.randrange(2)}", [record]) for record in records]
    reads = [
        (f"p{reader}", [record]) for reader in range(2, rng.randint(3, 4)) for record in records
    ]
    tokens = writes + reads
    for _ in range(rng.randrange(3)):
        mistake, at = rng.randrange(5), rng.randrange(len(tokens))
        who, what = tokens[at]
        if mistake == 0:
            del tokens[at]
        elif mistake == 1:
            tokens.insert(rng.randrange(len(tokens)), tokens.pop(at))
        elif mistake == 2 and who.startswith("p"):
            tokens.insert(at, (who, what))
        elif mistake == 3:
            tokens[at] = who, [f"{what[0].partition('@')[0]}@{rng.randrange(5)}"]
        elif mistake == 4:
            tokens[at] = rng.choice("ps") + who[1:], what
        if not tokens:
            tokens = writes
    for who, what in tokens:
        yield f"{who}:{','.join(what)}"
    if rng.random() < 0.5:
        yield f"c2:x@{len(records)}"
