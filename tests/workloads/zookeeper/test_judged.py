"""Histories of every workload against a ZooKeeper in a dictionary: right, and with planted bugs."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from harness.app import catalogue
from model.op import Op
from tests.workloads.conftest import simulate
from tests.workloads.zookeeper import lab
from tests.workloads.zookeeper.naive import Naive, Value, Znode

NAMES = sorted(name for name, w in catalogue.WORKLOADS.items() if w.service == "zookeeper")
Broken = Callable[[Naive, Op, Value], Value | None]


def parents(workload: str) -> Iterator[str]:
    """The znodes that the clients of a workload create before their first operation."""
    made: list[Any] = []

    class Noting:
        def __init__(self, session: Any, parents: Any, **rest: Any) -> None:
            made.extend(parents)

    from model.connection import Connection
    from workloads.zookeeper import common

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(common, "ZooKeeperClient", Noting)
        patched.setattr(common, "session", lambda *given: None)
        plan = lab.plan_of(workload)
        catalogue.WORKLOADS[workload].client(plan, Connection(""), 0)
    yield from made


def history(workload: str, seed: int, doubt_p: float, broken: Broken | None = None) -> list[Op]:
    """The main phase and the final reads of a run."""
    naive = Naive(random.Random(seed), doubt_p)
    if broken is not None:
        naive.broken = broken
    naive.tree = {path: Znode("", 1, 1) for path in parents(workload)}
    plan = lab.plan_of(workload, seed=seed, rate_hz=40.0, time_limit_s=10.0)
    chosen = catalogue.WORKLOADS[workload]
    ran = simulate(chosen.main(plan), naive.answer)
    for process in {op.process for op in ran}:
        naive.close(process)  # as the harness does before the final reads
    shift, threads = len(ran), plan.concurrency
    last = simulate(chosen.final(plan, (), 60.0), naive.answer)
    beyond = threads * (1 + max((op.process for op in ran), default=0))
    return ran + [
        msgspec.structs.replace(
            op,
            index=op.index + shift,
            time_ns=op.time_ns + 10**12,
            process=op.process + beyond,
        )
        for op in last
    ]


@given(st.sampled_from(NAMES), st.integers(0, 1 << 30), st.sampled_from((0.0, 0.05, 0.2)))
@settings(max_examples=25, deadline=None, phases=[Phase.generate])  # a seed cannot be shrunk
def test_a_correct_server_is_valid(workload: str, seed: int, doubt_p: float) -> None:
    """Nothing is found wrong with a correct server, however many writes have no answer."""
    whole, verdict = lab.judge(history(workload, seed, doubt_p))
    assert whole.found.found == []
    assert not [reason for reason in verdict.unknown_because if "crashed" in reason]


def drop_write(naive: Naive, op: Op, result: Value) -> Value | None:
    """Acknowledge a write, and forget it."""
    if op.f == "set" and naive.rng.random() < 0.1:
        znode = naive.tree[op.value["path"]]
        znode.version -= 1
        znode.data = "gone"
    return None


def stale_reads(naive: Naive, op: Op, result: Value) -> Value | None:
    """Answer a read with the state before the last write."""
    stat = result.get("stat")
    if op.f != "get" or not stat or stat["version"] < 2 or naive.rng.random() > 0.2:
        return None
    return {**result, "stat": {**stat, "version": stat["version"] - 1, "mzxid": stat["mzxid"] - 1}}


def zxid_goes_back(naive: Naive, op: Op, result: Value) -> Value | None:
    """Answer with a smaller zxid now and then."""
    return {**result, "zxid": naive.zxid - 5} if naive.rng.random() < 0.1 else None


def reused_number(naive: Naive, op: Op, result: Value) -> Value | None:
    """Forget the last number of a parent."""
    if op.f in ("create", "enqueue") and op.value.get("sequential") and naive.rng.random() < 0.2:
        parent = result["created"].rpartition("/")[0]
        del naive.tree[result["created"]]
        naive.numbers[parent] -= 1
    return None


def half_multi(naive: Naive, op: Op, result: Value) -> Value | None:
    """Execute only the first part of a multi."""
    if op.f == "multi" and naive.rng.random() < 0.2:
        last = naive.tree[op.value["parts"][-1][1]]
        last.version -= 1
        last.mzxid -= 1
    return None


def lost_ephemerals(naive: Naive, op: Op, result: Value) -> Value | None:
    """Delete an ephemeral znode of a live session."""
    if op.f == "create" and naive.rng.random() < 0.2:
        del naive.tree[op.value["path"]]
    return None


def kept_ephemerals(naive: Naive, op: Op, result: Value) -> Value | None:
    """Let ephemeral znodes live on."""
    if op.f == "create":
        naive.tree[op.value["path"]].owner = 0
    return None


def silent_watches(naive: Naive, op: Op, result: Value) -> Value | None:
    """Forget a watch."""
    if op.f == "get" and naive.rng.random() < 0.2:
        naive.watches.pop((op.process, op.value["path"]), None)
    return None


def silent_observers(naive: Naive, op: Op, result: Value) -> Value | None:
    """Forget a persistent watch."""
    if op.f == "get" and naive.rng.random() < 0.2:
        naive.observers.pop((op.process, op.value["path"]), None)
    return None


def late_events(naive: Naive, op: Op, result: Value) -> Value | None:
    """Answer a write before the events of its change."""
    for table in (naive.pending, naive.changes):
        table.pop(op.process, None)
    return None


def taken_twice(naive: Naive, op: Op, result: Value) -> Value | None:
    """Give an element to two clients."""
    if op.f == "dequeue" and result["deleted"] and naive.rng.random() < 0.2:
        naive.tree[result["deleted"]] = Znode(result["data"], 1, 1)
    return None


def lost_additions(naive: Naive, op: Op, result: Value) -> Value | None:
    """Acknowledge an addition that another one then overwrites."""
    if op.f == "add" and naive.rng.random() < 0.2:
        znode = naive.tree[op.value["path"]]
        znode.version -= 1
        znode.data = str(int(znode.data) - op.value["delta"])
    return None


def uncounted_deletions(naive: Naive, op: Op, result: Value) -> Value | None:
    """Count only creations in the version of a parent's children."""
    if op.f != "children":
        return None
    creations = naive.numbers.get(op.value["path"], 0)
    return {**result, "stat": {**result["stat"], "cversion": creations}}


def lets_in(naive: Naive, op: Op, result: Value) -> Value | None:
    """Do not compare passwords."""
    return {"granted": True} if op.f == "intrude" else None


@pytest.mark.parametrize(
    ("workload", "broken", "anomaly"),
    [
        ("zk-register", drop_write, "zk-lost-update"),
        ("zk-kv", drop_write, "zk-garbage-read"),
        ("zk-reads", stale_reads, "zk-divergence"),
        ("zk-reads", zxid_goes_back, "zk-nonmonotonic-session"),
        ("zk-children", reused_number, "zk-sequence-reused"),
        ("zk-queue", reused_number, "zk-sequence-reused"),
        ("zk-multi", half_multi, "zk-torn-multi"),
        ("zk-sessions", lost_ephemerals, "zk-ephemeral-lost"),
        ("zk-sessions", kept_ephemerals, "zk-ephemeral-outlived"),
        ("zk-watches", silent_watches, "zk-watch-missed"),
        ("zk-watches", silent_observers, "zk-watch-missed"),
        ("zk-watches", silent_observers, "zk-watch-vanished"),
        ("zk-watches", late_events, "zk-watch-missed"),
        ("zk-children", uncounted_deletions, "zk-list-divergence"),
        ("zk-sessions", lets_in, "zk-session-stolen"),
        ("zk-queue", taken_twice, "zk-duplicate-dequeue"),
        ("zk-counter", lost_additions, "zk-lost-update"),
    ],
)
def test_a_planted_bug_is_found(workload: str, broken: Broken, anomaly: str) -> None:
    """Each bug shows as its anomaly."""
    whole, verdict = lab.judge(history(workload, 3, 0.0, broken))
    assert anomaly in {found.anomaly for found in whole.found.found}
    assert verdict.valid is False
