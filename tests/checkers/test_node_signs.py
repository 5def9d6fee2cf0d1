from typing import Any

import pytest

from checkers import node_signs
from checkers.facts import Fault
from model.node_sign import Kind, NodeSign

S = 1_000_000_000


def sign(
    kind: Kind = "disk-full",
    at_s: float | None = 5.0,
    last_s: float | None = None,
    node: str = "broker-2",
    **more: Any,
) -> NodeSign:
    """Make a sign that was logged between these seconds of the run."""
    time_ns = None if at_s is None else round(at_s * S)
    last_ns = time_ns if last_s is None else round(last_s * S)
    return NodeSign(node=node, kind=kind, time_ns=time_ns, last_ns=last_ns, line="a line", **more)


def fault(
    name: str = "disk-full", to_s: float | None = 8.0, targets: object = ("broker-2",)
) -> Fault:
    """Make a fault that began at second 4."""
    to_ns = None if to_s is None else round(to_s * S)
    where = list(targets) if isinstance(targets, tuple) else targets
    return Fault(id=1, fault=name, from_ns=4 * S, to_ns=to_ns, proved=True, how="", targets=where)


@pytest.mark.parametrize(
    ("shown", "faults", "is_reason"),
    [
        (sign(), [], True),
        (sign(), [fault()], False),
        (sign(), [fault(to_s=None)], False),
        (sign(), [fault(targets="broker-2")], False),
        (sign(), [fault("pause"), fault()], False),
        (sign("fatal-error"), [fault()], False),
        (sign(at_s=10.9), [fault()], False),
        (sign(at_s=11.1), [fault()], True),
        (sign(at_s=7.0, last_s=11.1), [fault()], True),
        (sign(at_s=3.9), [fault()], True),
        (sign(at_s=None), [fault()], True),
        (sign(), [fault(targets=("broker-1",))], True),
        (sign(), [fault("pause")], True),
        (sign("out-of-memory"), [fault()], True),
        (sign("jvm-crash"), [fault(), fault("kill")], True),
        (sign("dead-thread"), [fault()], True),
    ],
)
def test_a_full_disk_explains_what_a_broker_logs_about_it(
    shown: NodeSign, faults: list[Fault], is_reason: bool
) -> None:
    """A full disk is expected on the node and during the time of a fault that fills it.

    No fault explains a crash of a JVM, a lack of memory, or a thread that ended.
    """
    assert bool(node_signs.reasons([shown], faults)) is is_reason


def test_a_sentence_has_node_time_and_line() -> None:
    """All signs of a kind that a node shows are one sentence: node, first time, first line."""
    several = [
        sign("out-of-memory", 9.5, 15.5, count=4),
        sign("out-of-memory", 21.0),
        sign("jvm-crash", None, node="zookeeper"),
    ]
    assert node_signs.reasons(several, []) == [
        "broker-2 was out of memory at 9.500 s: a line (the first of 5 lines)",
        "the JVM of zookeeper crashed at an unknown time: a line",
    ]


def test_many_signs_are_counted() -> None:
    """A verdict has a bounded number of sentences about signs."""
    many = [sign(node=f"broker-{number}") for number in range(node_signs.SENTENCES_MAX + 5)]
    *_, last = node_signs.reasons(many, [])
    assert last == "5 more signs are in node-signs.jsonl"
    assert len(node_signs.reasons(many, [])) == node_signs.SENTENCES_MAX + 1
