"""Records are deleted during a run."""

import msgspec

from model.op import Op
from tests.workloads.conftest import PLAN, simulate, yes
from workloads.common.deletion import AHEAD_MAX
from workloads.idempotent import WORKLOAD


def test_records_are_deleted_up_to_what_is_known() -> None:
    """Records of every partition are deleted up to the known end, or a little beyond."""
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"deletes_hz": 20.0})
    offsets: dict[str, int] = {}

    def answer(op: Op) -> Op:
        if op.f != "send":
            return yes(op)
        told = []
        for _, key, value in op.value:
            offsets[key] = offsets.get(key, -1) + 1
            told.append(["send", key, [offsets[key], value]])
        return msgspec.structs.replace(op, type="ok", value=told)

    known: dict[str, int] = {}
    asked: dict[str, int] = {}
    for op in simulate(WORKLOAD.main(plan), answer):
        if op.f == "send" and op.type == "ok":
            known |= {key: offset + 1 for _, key, (offset, _) in op.value}
        if op.f == "delete-records" and op.type == "invoke":
            [[_, key, offset]] = op.value
            assert 0 < offset <= known[key] + AHEAD_MAX
            asked[key] = max(offset - known[key], asked.get(key, offset - known[key]))
    assert set(asked) == set(offsets)
    assert max(asked.values()) == AHEAD_MAX
