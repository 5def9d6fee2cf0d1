"""The operations of the workload: simulated members that learn of rebalances by their polls."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import Answer, sends, simulate, yes
from workloads.groups import ASSIGNORS, COMMITS, WORKLOAD, hows, instances, vary

PLAN = Plan(
    workload=WORKLOAD.name,
    time_limit_s=8.0,
    rate_hz=50.0,
    concurrency=6,
    options={**WORKLOAD.options, "commit": "sync", "process_life_s": 4.0},
    broker=dict(WORKLOAD.broker),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)


def plan(**options: Any) -> Plan:
    return msgspec.structs.replace(PLAN, options=PLAN.options | options)


def reading(key: str = "topic0-0") -> Answer:
    """Answer each poll of a member with the next record of a partition."""
    offsets: Iterator[int] = itertools.count()
    members: set[int] = set()

    def answer(op: Op) -> Op:
        if op.f == "subscribe":
            members.add(op.process)
        if op.f == "poll" and op.process in members:
            offset = next(offsets)
            return msgspec.structs.replace(op, type="ok", value=[["poll", {key: [[offset, 0]]}]])
        return yes(op)

    return answer


def test_members_subscribe_before_they_poll() -> None:
    """A member subscribes to every existing topic before it polls, and again after a new topic."""
    history = simulate(WORKLOAD.main(PLAN), threads=6)
    subscribed: dict[int, list[list[str]]] = {}
    for op in history:
        if op.f == "subscribe" and op.type == "ok":
            [[_, group, topics, how]] = op.value
            assert group == f"group{op.process % 6 % 2}"
            assert how["commit"] == "sync"
            subscribed.setdefault(op.process, []).append(topics)
        if op.f in ("poll", "commit", "freeze", "leave") and op.process % 6 >= 2:
            assert op.process in subscribed
    assert {len(topics) for times in subscribed.values() for topics in times} == {1, 2, 3}
    assert all(times == sorted(times, key=len) for times in subscribed.values())
    assert {op.process % 6 for op in sends(history)} == {0, 1}
    assert {op.process % 6 for op in history if op.f == "assign"} == {0, 1}
    assert {process % 6 for process in subscribed} == {2, 3, 4, 5}


def test_a_member_commits_behind_what_it_has_read() -> None:
    """A member commits the position after what it has read, and only what is not committed yet."""
    read: dict[int, int] = {}
    committed: dict[int, int] = {}
    commits = 0
    for op in simulate(WORKLOAD.main(PLAN), reading(), threads=6):
        if op.f == "poll" and op.type == "ok" and op.process % 6 >= 2:
            read[op.process] = op.value[0][1]["topic0-0"][0][0] + 1
        if op.f == "commit" and op.type == "invoke":
            commits += 1
            *_, (_, _, offsets, mode) = op.value
            assert offsets == {"topic0-0": read[op.process]}
            assert offsets["topic0-0"] > committed.get(op.process, -1)
            committed[op.process] = offsets["topic0-0"]
            assert mode == "sync"
    assert commits > 50


@pytest.mark.parametrize("commit", ["listener", "auto"])
def test_others_commit_by_themselves(commit: str) -> None:
    """Members with ``listener`` or ``auto`` get no commit operations."""
    history = simulate(WORKLOAD.main(plan(commit=commit)), reading(), threads=6)
    assert "commit" not in {op.f for op in history}
    assert {"poll", "freeze", "leave", "crash", "committed", "watermarks"} <= {
        op.f for op in history
    }


@pytest.mark.parametrize("change", ["revoked", "lost"])
def test_what_was_given_back_is_not_committed(change: str) -> None:
    """A commit has no partition that the last poll has revoked."""
    read = reading()

    def answer(op: Op) -> Op:
        done = read(op)
        if op.f == "poll":
            gone = [change, "group0", 1, ["topic0-0"]]
            records = {"topic0-1": [[3, 0], [4, 0]]}
            value = [gone, ["assigned", "group0", 2, {"topic0-1": None}], ["poll", records]]
            return msgspec.structs.replace(done, value=value)
        return done

    history = simulate(WORKLOAD.main(PLAN), answer, threads=6)
    commits = [op for op in history if op.f == "commit" and op.type == "invoke"]
    assert commits
    assert all(op.value[-1][2] == {"topic0-1": 5} for op in commits)


def test_some_sleep_in_the_middle_of_a_commit() -> None:
    """A freeze precedes a commit or is alone, and is as long as the plan allows."""
    history = simulate(WORKLOAD.main(plan(freeze_p=0.1)), reading(), threads=6)
    freezes = [op for op in history if op.type == "invoke" and op.f in ("freeze", "commit")]
    shapes = {(op.f, tuple(each[0] for each in op.value)) for op in freezes}
    assert shapes == {
        ("freeze", ("freeze",)),
        ("commit", ("commit",)),
        ("commit", ("freeze", "commit")),
    }
    slept = [each[2] for op in freezes for each in op.value if each[0] == "freeze"]
    assert 4000 < max(slept) <= PLAN.options["freeze_max_ms"]


def test_a_life_ends_by_a_leave_or_a_crash() -> None:
    """The next process of a thread subscribes again, with the same instance id if it is static."""
    history = simulate(WORKLOAD.main(plan(static_p=1.0, process_life_s=1.0)), reading(), threads=6)
    ends = [op for op in history if op.f in ("leave", "crash") and op.type == "invoke"]
    assert {op.f for op in ends if op.process % 6 >= 2} == {"leave", "crash"}
    ids: dict[int, set[str]] = {}
    for op in history:
        if op.f == "subscribe":
            ids.setdefault(op.process % 6, set()).add(op.value[0][3]["instance"])
    assert ids == {thread: {f"thread-{thread}"} for thread in range(2, 6)}


def test_somebody_has_offsets_deleted() -> None:
    """Offsets of every group are deleted by processes that are no members, if the plan says so."""
    history = simulate(WORKLOAD.main(plan(client="aiokafka", offset_deletes_hz=4.0)), threads=6)
    asked = [op for op in history if op.f == "commit" and op.value[0][-1] == "delete"]
    deletions = [op for op in asked if op.type == "invoke"]
    assert len(deletions) == pytest.approx(4 * PLAN.time_limit_s, rel=0.3)
    assert {op.value[0][1] for op in deletions} == {"group0", "group1"}
    assert all(list(op.value[0][2].values()) == [None] for op in deletions)
    members = {op.process for op in history if op.f == "subscribe"}
    assert not members & {op.process for op in deletions}
    assert not any(
        op.value[0][-1] == "delete"
        for op in simulate(WORKLOAD.main(PLAN), threads=6)
        if op.f == "commit"
    )


def test_each_group_is_configured_by_the_seed() -> None:
    """The seed chooses how groups commit and their assignors, unless the plan does."""
    for client, assignors in ASSIGNORS.items():
        found = [
            each
            for seed in range(20)
            for each in hows(
                msgspec.structs.replace(plan(client=client, commit=""), seed=seed)
            ).values()
        ]
        assert {how.commit for how in found} == set(COMMITS)
        assert {how.assignor for how in found} == set(assignors)
    held = hows(plan(assignor="roundrobin", commit="listener"))
    assert set(held.values()) == {("roundrobin", "listener")}
    assert instances(plan(static_p=0.0)) == {}


def test_at_the_end_somebody_joins_each_group() -> None:
    """At the end one member after another joins each group, is assigned partitions, and leaves.

    Meanwhile the other threads fetch committed offsets and read to the end.
    """
    polls = itertools.count()

    def answer(op: Op) -> Op:
        if op.f == "poll" and op.process % 6 == 0 and next(polls) % 5 == 4:
            value = [["assigned", "group0", 9, {"topic0-0": 3}], ["poll", {}]]
            return msgspec.structs.replace(op, type="ok", value=value)
        if op.f == "leave":
            return msgspec.structs.replace(op, type="info")
        return yes(op)

    history = simulate(WORKLOAD.final(PLAN, ("topic0-0", "topic1-0"), 60.0), answer, threads=6)
    done = [op for op in history if op.type != "invoke"]
    joined = [op.value[0][1] for op in done if op.f == "subscribe"]
    assert joined == ["group0", "group1"]
    assert [op.value[0][1] for op in done if op.f == "leave"] == joined
    assert sum(op.f == "poll" and op.process % 6 == 0 for op in done) >= 10
    assert {op.value[0][1] for op in done if op.f == "committed"} == {"group0", "group1"}
    assert {op.value[0][1] for op in done if op.f == "catch-up"} == {"topic0-0", "topic1-0"}


def test_a_search_varies_the_members() -> None:
    """Every plan that is drawn can be run, and sessions last for several heartbeats."""
    parts = [vary(random.Random(seed)) for seed in range(30)]
    drawn = [part["options"] for part in parts]
    assert all(
        len({options[name] for options in drawn}) > 1 for name in drawn[0] if name != "settle_s"
    )
    for consumer in (part["consumer"] for part in parts):
        session_ms = int(consumer["session.timeout.ms"])
        assert session_ms >= 3 * int(consumer["heartbeat.interval.ms"])
        assert int(consumer["max.poll.interval.ms"]) >= session_ms
    assert all(WORKLOAD.refuse(plan(client="aiokafka", **options)) is None for options in drawn)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"concurrency": 1}, "--concurrency: groups needs at least 2"),
        ({"options": PLAN.options | {"groups": 0}}, "options: groups=0: must be"),
        ({"options": PLAN.options | {"leave_p": 1.5}}, "options: leave_p=1.5: must be from 0 to 1"),
        ({"options": PLAN.options | {"subscribe": False}}, "options: subscribe=False: "),
        (
            {"options": PLAN.options | {"assignor": "sticky"}},
            "options: assignor=sticky: must be one of",
        ),
        ({"options": PLAN.options | {"commit": "never"}}, "options: commit=never: must be one of"),
        (
            {"options": PLAN.options | {"offset_deletes_hz": 1.0}},
            "options: offset_deletes_hz: confluent-kafka",
        ),
        ({"producer": {"acks": "most"}}, "--set producer"),
    ],
)
def test_impossible_plans_are_refused(changes: dict[str, object], told: str) -> None:
    """A plan that cannot be run is rejected in one line that names the option."""
    refusal = WORKLOAD.refuse(msgspec.structs.replace(PLAN, **changes))
    assert refusal is not None
    assert refusal.startswith(told)


def test_a_sleeper_is_waited_for() -> None:
    """The time limit of an operation includes the longest freeze."""
    assert WORKLOAD.op_timeout_s(plan(freeze_max_ms=60_000)) > 70
