"""Topics are created one at a time, and again until that has succeeded."""

import random

import msgspec
import pytest

from model.generator import Context, Generator, Invocation, Wait
from model.op import Op
from tests.workloads.conftest import PLAN, simulate, yes
from workloads.common.topics import Topics
from workloads.idempotent import WORKLOAD


@pytest.mark.parametrize("kind", ["fail", "info"])
def test_a_creation_that_did_not_succeed_is_asked_again(kind: str) -> None:
    """A topic is created again until that has succeeded, and not written before."""
    refusals = iter([kind] * 4)

    def answer(op: Op) -> Op:
        if op.f == "create-topic" and (refusal := next(refusals, None)):
            return msgspec.structs.replace(op, type=refusal)
        return yes(op)

    history = simulate(WORKLOAD.main(PLAN), answer)
    created: set[str] = set()
    for op in history:
        if op.f == "create-topic" and op.type == "ok":
            created.add(op.value[0][1])
        if op.f == "send":
            assert op.value[0][1].rpartition("-")[0] in created
    assert len(created) == 6


def test_a_topic_is_asked_for_once_at_a_time() -> None:
    """No process creates a topic while another one does."""
    topics: Generator = Topics(((0.0, "t"),), 2)
    asked, later = topics.op(Context(1.0, (0, 1), 2, random.Random(1)))
    assert isinstance(asked, Invocation)
    op = Op(index=0, time_ns=0, process=0, type="invoke", f="create-topic", value=asked.value)
    assert isinstance(later.update(op).op(Context(1.0, (1,), 2, random.Random(1)))[0], Wait)
