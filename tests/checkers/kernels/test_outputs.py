from typing import Any

import pytest

from checkers.kernels.outputs import kernel
from model.transform import input_of, output

INPUT = "s:in-0=1@0,in-0=2@1,in-0=3@2 "
"""Two events; with the third, values 1 to 3 were acknowledged."""
JOINED = "m1:in m2:in "
READ = "p7:in-0=1@0,in-0=2@1,in-0=3@2 "
"""A read that shows the inputs."""


def txn(process: str, records: str, position: int, offset: int, attempt: int) -> str:
    """A transaction that processes these records, each as ``value@offset``."""
    polled = [part.split("@") for part in records.split(",")]
    sends = ",".join(
        f"out-0={output(int(value), attempt)}@{offset + n}" for n, (value, _) in enumerate(polled)
    )
    told = ",".join(f"in-0={value}@{place}" for value, place in polled)
    return f"t{process}:{told}|+{sends}|!in-0@{position} "


ONE, TWO = txn("1", "1@0,2@1", 2, 0, 5), txn("2", "3@2", 3, 2, 6)


def told(histories: Any, text: str) -> list[str]:
    return [
        f"{f.anomaly} {f.variant} {f.key} {f.offset} {f.also} {f.ops}".replace("  ", " ")
        for f in kernel(histories.tables(INPUT + JOINED + READ + text))
    ]


def outputs(*made: tuple[int, int]) -> str:
    """A reader shows what these attempts made of these inputs, and reads to the end."""
    shown = ",".join(f"out-0={output(value, n)}@{at}" for at, (value, n) in enumerate(made))
    return f"a8:out-0 p8:{shown} c8:out-0@{len(made)} "


def test_an_output_tells_its_input() -> None:
    """An output's value identifies its input, and differs between attempts."""
    assert input_of(output(7, 123)) == input_of(output(7, 124)) == 7
    assert output(7, 123) != output(7, 124)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ONE + TWO, []),
        (ONE + txn("2!", "3@2", 3, 2, 6), []),
        (ONE + txn("2!", "3@2", 3, 2, 6) + txn("1", "3@2", 3, 3, 7), []),
        (ONE + txn("2?", "3@2", 3, 2, 6) + txn("1", "3@2", 3, 3, 7), []),
        # twice
        (ONE + txn("2", "2@1,3@2", 3, 2, 6), ["eos-mismatch in-0 1 (1,) (9, 11)"]),
        (ONE + txn("2", "1@0,2@1", 2, 2, 6), ["eos-mismatch in-0 0 (0, 1) (9, 11)"]),
        (ONE + txn("2?", "2@1", 2, 2, 6), []),
        (
            ONE + txn("2?", "2@1", 2, 2, 6) + outputs((1, 5), (2, 5), (2, 6)),
            ["eos-mismatch proven in-0 1 (1,) (9, 11)"],
        ),
        # what is polled and not committed as read is read again
        (txn("1", "1@0,2@1", 1, 0, 5) + txn("2", "2@1,3@2", 3, 2, 6), []),
        # never
        (txn("1", "1@0", 1, 0, 5) + TWO, ["eos-mismatch in-0 1 (1,) (1, 11)"]),
        (
            txn("1", "1@0", 1, 0, 5) + txn("2!", "2@1", 2, 2, 6) + TWO,
            ["eos-mismatch in-0 1 (1,) (1, 13)"],
        ),
        (txn("1", "1@0", 1, 0, 5) + txn("2?", "2@1", 2, 2, 6) + txn("1", "3@2", 3, 2, 6), []),
        (
            txn("1", "1@0", 1, 0, 5)
            + txn("2?", "2@1", 2, 2, 6)
            + txn("1", "3@2", 3, 2, 7)
            + outputs((1, 5), (3, 7)),
            ["eos-mismatch in-0 1 (1,) (1, 13)"],
        ),
        (
            txn("1", "1@0", 1, 0, 5)
            + txn("2?", "2@1", 2, 2, 6)
            + txn("1", "3@2", 3, 2, 7)
            + outputs((1, 5), (2, 6), (3, 7)),
            [],
        ),
        (txn("1", "2@1", 2, 0, 5) + TWO, []),  # where it began is unknown
        ("p1:^in-0@0#1| " + txn("1", "2@1", 2, 0, 5) + TWO, ["eos-mismatch in-0 0 (0,) (1, 13)"]),
        ("p1:^in-0@0#1| t1?:|!? " + txn("2", "2@1", 2, 0, 5) + TWO, []),  # that one may have
        (
            "p1:^in-0@0#1| t1?:|!? " + txn("2", "2@1", 2, 0, 5) + TWO + outputs((2, 5), (3, 6)),
            ["eos-mismatch in-0 0 (0,) (1, 15)"],  # and left nothing
        ),
        (
            "p1:^in-0@0#1| t1?:|!? "
            + txn("2", "2@1", 2, 0, 5)
            + TWO
            + outputs((2, 5), (3, 6), (1, 7)),
            [],
        ),
        # a transaction with other outputs
        ("t1:in-0=1@0|+out-0=77@0|!in-0@1 t2:in-0=1@0|+out-0=78@1|!in-0@1 ", []),
        ("t1:in-0=1@0|!in-0@1 t2:in-0=1@0|!in-0@1 ", []),
    ],
)
def test_exactly_once(histories: Any, text: str, found: list[str]) -> None:
    """Each input is processed by exactly one committed transaction."""
    assert told(histories, text) == found


def test_an_input_that_was_never_acknowledged_is_none(histories: Any) -> None:
    """An input that was never acknowledged need not be processed."""
    text = "s?:in-0=1 s1:in-0=2@1 m3:in m2:in p2:^in-0@0#1| p7:in-0=1@0,in-0=2@1 "
    assert kernel(histories.tables(text + txn("2", "2@1", 2, 0, 5))) == []
