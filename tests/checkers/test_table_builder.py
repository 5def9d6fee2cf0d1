"""The tables that are built of events."""

from typing import Any

import pytest

from checkers.kernels.rows import FAIL, INFO, OK, UNKNOWN
from model.op import Op


def test_operations_join_invocations_with_completions(histories: Any) -> None:
    """Operations join each process's invocations and completions; an uncompleted one is in
    doubt."""
    made = histories.tables(">s1:x=a >s2:x=b <s1:x=a@0 <s2!:x=b >s3:x=c p: p?:")
    operations = made.operations
    assert operations.invoked.tolist() == [0, 1, 4, 5, 7]
    assert operations.op.tolist() == [2, 3, 4, 6, 8]
    assert operations.outcome.tolist() == [OK, FAIL, INFO, OK, INFO]
    assert operations.completed.tolist() == [True, True, False, True, True]


def test_sends_tell_what_was_tried_and_what_came_of_it(histories: Any) -> None:
    """Sends have values, offsets where they were acknowledged, and the outcome of their
    operation."""
    sends = histories.tables("s:x=a@7,x=b s1?:x=c s2!:x=d >s3:x=e").sends
    assert sends.value.tolist() == [1, 2, 3, 4, 5]
    assert sends.offset.tolist() == [7, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]
    assert sends.outcome.tolist() == [OK, OK, INFO, FAIL, INFO]
    assert sends.op.tolist() == [1, 1, 3, 5, 6]


def test_negative_offsets_are_none(histories: Any) -> None:
    """A negative offset, such as the -1001 of a client with acks=0, is an unknown one."""
    asked, done = histories.events("s:x=a@0")
    value = [["send", "x", [-1001, 1]]]
    fields = {f: getattr(done, f) for f in done.__struct_fields__}
    sends = histories.tables([asked, Op(**fields | {"value": value})]).sends
    assert sends.offset.tolist() == [UNKNOWN]


def test_a_completion_that_tells_less_than_was_asked(histories: Any) -> None:
    """Records that only the invocation names were tried, and their outcome is unknown."""
    ops = histories.events("s?:x=a@0,x=b@1 s1?:x=c,x=d s2:x=e@5")
    shorter = [["send", "x", [0, 1]]]
    changed = [
        Op(**{f: getattr(op, f) for f in op.__struct_fields__} | {"value": value})
        for op, value in zip(
            ops,
            [ops[0].value, shorter, ops[2].value, None, ops[4].value, ops[5].value],
            strict=True,
        )
    ]
    sends = histories.tables(changed).sends
    assert sends.value.tolist() == [1, 2, 3, 4, 5]
    assert sends.outcome.tolist() == [INFO, INFO, INFO, INFO, OK]
    assert sends.op.tolist() == [1, 1, 3, 3, 5]


def test_polls_keep_the_order_of_delivery(histories: Any) -> None:
    """Polls keep the order of delivery over partitions, micro-operations and operations."""
    polls = histories.tables("p:x=a@0,x=b@1|y=c@0 p: p!:x=d@2").polls
    assert polls.value.tolist() == [1, 2, 3, 4]
    assert polls.offset.tolist() == [0, 1, 0, 2]
    assert polls.outcome.tolist() == [OK, OK, OK, FAIL]


@pytest.mark.parametrize(
    ("text", "caught_up"),
    [
        ("s:x=a@0 c:x@1", {"x": 1}),
        ("c:x@0 s:x=a@0", {}),  # more was acknowledged afterwards
        (">c:x@0 s:x=a@0 <c:x@1", {}),  # invoked before the acknowledgement
        ("c:x@0 s?:x=a", {"x": 0}),  # nothing was acknowledged
        ("s:x=a@0 c!:x@1", {}),
        ("s:x=a@0 c:x@1 c!:x@1", {"x": 1}),
    ],
)
def test_caught_up(histories: Any, text: str, caught_up: dict[str, int]) -> None:
    """A partition is caught up by a successful catch-up that was invoked after the last
    acknowledgement."""
    made = histories.tables(text)
    found = {made.keys[key]: catch_up.position for key, catch_up in made.caught_up().items()}
    assert found == caught_up


def fault(index: int, kind: Any, id_: int, phase: str, **more: Any) -> Op:
    value = {"id": id_, "phase": phase, "targets": ["broker-1"], **more}
    return Op(index=index, time_ns=index * 10, process=-1, type=kind, f="pause", value=value)


def test_faults_are_bands_with_their_proof(histories: Any) -> None:
    """A fault lasts from its request until it is healed, and is proved only by a measured
    effect."""
    proof = {"effect": {"proved": True, "how": "state T"}}
    made = histories.tables(
        [
            fault(0, "invoke", 1, "apply"),
            fault(1, "info", 1, "apply", **proof),
            fault(2, "invoke", 1, "heal"),
            fault(3, "info", 1, "heal"),
            fault(4, "invoke", 2, "apply"),
        ]
    )
    first, second = made.faults
    assert (first.id, first.from_ns, first.to_ns, first.proved, first.how) == (
        1,
        0,
        30,
        True,
        "state T",
    )
    assert (second.id, second.to_ns, second.proved) == (2, None, False)


def test_a_fault_that_is_tried_again_lasts_until_its_last_mend(histories: Any) -> None:
    """A fault that is tried again lasts from its first request to its last heal, with the last
    effect."""
    tries = [
        fault(0, "invoke", 1, "apply"),
        fault(1, "info", 1, "apply", effect={"proved": False, "how": "no answer"}),
        fault(2, "invoke", 1, "heal"),
        fault(3, "info", 1, "heal", effect={"proved": True, "how": "nothing to mend"}),
        fault(4, "invoke", 1, "apply"),
        fault(5, "info", 1, "apply", effect={"proved": True, "how": "moved"}),
    ]
    (unhealed,) = histories.tables(tries).faults
    assert (unhealed.from_ns, unhealed.to_ns, unhealed.how) == (0, None, "moved")
    (healed,) = histories.tables([*tries, fault(6, "info", 1, "heal")]).faults
    assert (healed.to_ns, healed.proved) == (60, True)
