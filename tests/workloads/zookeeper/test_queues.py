"""At the end, queues are emptied before they are listed."""

import msgspec

from model.op import Op
from tests.workloads.conftest import simulate
from tests.workloads.zookeeper import lab
from workloads.zookeeper.queues import WORKLOAD


def test_queues_are_emptied_and_then_listed() -> None:
    """Elements are taken until a queue is empty, whatever fails meanwhile."""
    plan = lab.plan_of("zk-queue", options={"queues": 2})
    left = {"/zk-queue/q0": 3, "/zk-queue/q1": 1}
    failures = ["info", "fail"]

    def answer(op: Op) -> Op:
        if op.f == "children":
            assert not left[op.value["path"]]
            return msgspec.structs.replace(op, type="ok")
        if failures:
            return msgspec.structs.replace(op, type=failures.pop())
        path = op.value["path"]
        taken = "/n" if left[path] else None
        left[path] -= bool(taken)
        return msgspec.structs.replace(op, type="ok", value={**op.value, "deleted": taken})

    history = simulate(WORKLOAD.final(plan, (), 60.0), answer)
    done = [op.f for op in history if op.type == "ok"]
    assert done == ["dequeue"] * 6 + ["children"] * 2
