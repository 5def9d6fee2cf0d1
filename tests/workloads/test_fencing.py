"""The operations of the workload: its generator with simulated clients."""

from typing import Any

import msgspec
import pytest

from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate, yes
from workloads.fencing import WORKLOAD, op_timeout_s, refuse

PLAN = Plan(
    workload="fencing",
    time_limit_s=60.0,
    rate_hz=20.0,
    concurrency=6,
    broker=dict(WORKLOAD.broker),
    options=dict(WORKLOAD.options),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)


def asked(history: list[Op], f: str) -> list[Op]:
    return [op for op in history if op.f == f and op.type == "invoke"]


class Broker:
    """A broker that rejects transactions of fenced processes, which ends them."""

    def __init__(self) -> None:
        self.holder: dict[str, int] = {}
        self.name_of: dict[int, str] = {}

    def __call__(self, op: Op) -> Op:
        if op.f == "init":
            name = op.value[0][1]
            self.holder[name], self.name_of[op.process] = op.process, name
        elif op.f == "txn" and self.holder[self.name_of[op.process]] != op.process:
            return msgspec.structs.replace(op, type="info", error="ProducerFenced")
        return yes(op)


def test_the_two_of_a_pair_take_their_id_from_each_other() -> None:
    """The processes of a pair take the transactional id from each other again and again."""
    history = simulate(WORKLOAD.main(PLAN), Broker(), threads=6)
    names = {op.process: op.value[0][1] for op in asked(history, "init")}
    assert {(process % 6, name) for process, name in names.items()} == {
        (0, "pair-0"), (1, "pair-0"), (2, "pair-1"), (3, "pair-1"),
    }  # fmt: skip
    fenced = [op for op in history if op.error == "ProducerFenced"]
    assert len(fenced) > 15
    assert len(names) == pytest.approx(len(fenced), abs=4)
    readers = {op.process % 6 for op in asked(history, "poll")}
    assert readers == {4, 5}


def test_takeovers_have_their_own_pace() -> None:
    """Takeovers of a pair are ``takeover_s`` apart, however soon zombies are fenced."""
    options = {**PLAN.options, "takeover_s": 4.0}
    plan = msgspec.structs.replace(PLAN, options=options, rate_hz=100.0)
    inits = asked(simulate(WORKLOAD.main(plan), Broker(), threads=6), "init")
    assert len(inits) == pytest.approx(2 * 60 / 4, rel=0.4)


def test_pauses_are_anywhere_in_a_transaction() -> None:
    """Pauses come before the first send, between two, and after the last."""
    rows = [op.value for op in asked(simulate(WORKLOAD.main(PLAN), Broker(), threads=6), "txn")]
    kinds = [[micro_op[0] for micro_op in row if micro_op != ["abort"]] for row in rows]
    assert any(row[0] == "delay" for row in kinds)
    assert any("delay" in row[1:-1] for row in kinds)
    assert any(row[-1] == "delay" for row in kinds)
    assert any("delay" not in row for row in kinds)
    assert all("send" in row for row in kinds)
    values: dict[str, list[int]] = {}
    for row in rows:
        for micro_op in row:
            if micro_op[0] == "send":
                values.setdefault(micro_op[1], []).append(micro_op[2])
    assert all(numbers == list(range(len(numbers))) for numbers in values.values())


def test_faults_may_aim_at_who_coordinates_a_pair() -> None:
    """Faults may target the coordinator of each pair's transactional id."""
    history = simulate(WORKLOAD.main(PLAN), Broker(), threads=6)
    names = {op.value[0][1] for op in asked(history, "init")}
    assert {f"transaction-coordinator:{name}" for name in names} == set(WORKLOAD.coordinators(PLAN))


def test_nobody_works_without_an_id() -> None:
    """No process begins a transaction before the response to ``init``."""
    history = simulate(WORKLOAD.main(PLAN), Broker(), threads=6)
    for process in {op.process for op in asked(history, "txn")}:
        mine = [op for op in history if op.process == process and op.f in ("init", "txn")]
        assert [(op.f, op.type) for op in mine[:2]] == [("init", "invoke"), ("init", "ok")]


@pytest.mark.parametrize("name", ["aiokafka", "librdkafka"])
def test_the_defaults_are_taken(name: str) -> None:
    """Both clients accept the default settings."""
    options = {**PLAN.options, "client": name}
    assert refuse(msgspec.structs.replace(PLAN, options=options)) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"options": {**PLAN.options, "takeover_s": 0}}, "takeover_s=0"),
        ({"options": {**PLAN.options, "delay_p": 3}}, "delay_p=3"),
        ({"concurrency": 2}, "--concurrency"),
        ({"producer": {**PLAN.producer, "acks": "0"}}, "producer.acks=0"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], why: str) -> None:
    """A plan that cannot be run is rejected with the name of its setting."""
    assert why in (refuse(msgspec.structs.replace(PLAN, **changes)) or "")


def test_an_operation_ends_before_it_is_given_up() -> None:
    """The time limit of an operation exceeds its steps, and no transaction times out."""
    sends_s, delays_s, ends_s = 4 * 4.0, 5 * 2.0, 3 * 1.8
    assert op_timeout_s(PLAN) > sends_s + delays_s + ends_s + 10
    assert int(WORKLOAD.producer["transaction.timeout.ms"]) / 1000 > delays_s + ends_s
