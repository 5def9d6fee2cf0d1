"""Schedules of historic bugs: the correct replica survives each of them, and a mutant does not.

Brokers are 1, 2, 3 where the descriptions of the bugs say A, B, C.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from broker_impl import mutants
from broker_impl.errors import ErrorCode
from broker_impl.replica import fencing, follower, isr
from broker_impl.replica.events import WriteIsr
from broker_impl.replica.replica_state import Stage
from tests.broker_impl.replica.pure_cluster import LAG_MAX_S, TP, PureCluster, Sent


@pytest.fixture(autouse=True)
def _none_stays() -> Iterator[None]:
    yield
    mutants.removed()


def started(brokers: int, isr_min: int) -> PureCluster:
    """A cluster led by broker 1, with a full ISR, and one record that all know to be committed."""
    cluster = PureCluster(brokers, isr_min=isr_min)
    cluster.elect(1)
    sent = cluster.produce(1, "m0")
    cluster.catch_up()
    assert cluster.outcome(sent) is ErrorCode.NONE
    return cluster


def fetch_all(cluster: PureCluster, *followers: int) -> None:
    for broker in followers:
        cluster.fetch(broker)


class Ending:
    """The end of a schedule: which acknowledged records are lost, which are doubled."""

    def __init__(self, cluster: PureCluster, acknowledged: list[str]) -> None:
        cluster.catch_up()
        self.cluster = cluster
        self.values = cluster.nodes[cluster.state.leader].values()
        self.lost = [value for value in acknowledged if value not in self.values]
        self.doubled = [value for value, count in Counter(self.values).items() if count > 1]

    def assert_good(self) -> None:
        assert self.lost == []
        assert self.doubled == []
        logs = [node.values() for node in self.cluster.nodes.values() if node.up]
        assert all(log == self.values for log in logs), "all replicas agree in the end"


class Client:
    """Producers that remember which records were acknowledged."""

    def __init__(self, cluster: PureCluster) -> None:
        self.cluster = cluster
        self.acknowledged: list[str] = []

    def settle(self, *sent: Sent) -> None:
        """Record which of these are acknowledged by now."""
        for one in sent:
            if self.cluster.outcome(one) is ErrorCode.NONE:
                self.acknowledged.append(one.value)


def a01_two_leaders_die() -> Ending:
    """Broker 2 has m1 but not the watermark above it, when brokers 1 and then 3 die."""
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    sent = cluster.produce(1, "m1")
    fetch_all(cluster, 2, 3)  # they have m1
    for broker in (2, 3):
        question = cluster.ask(broker)  # their next fetch reports it
        assert question is not None
        cluster.serve(question)  # its response is lost
    client.settle(sent)
    assert client.acknowledged == ["m1"]
    cluster.nodes[1].kill()
    cluster.elect(3, isr=(2, 3))  # broker 2 follows broker 3
    cluster.nodes[3].kill()  # before broker 2 has fetched
    cluster.elect(2, isr=(2,))
    cluster.nodes[3].start()
    cluster.notice_start(3)
    cluster.nodes[1].start()
    cluster.notice_start(1)
    return Ending(cluster, client.acknowledged)


def a01_as_in_kip_101() -> Ending:
    """Broker 2 restarts, truncates to its watermark, and is elected before it fetches."""
    cluster = started(2, isr_min=1)
    client = Client(cluster)
    cluster.nodes[2].checkpoint()
    sent = cluster.produce(1, "m1")
    cluster.fetch(2, rounds=2)
    client.settle(sent)
    cluster.nodes[2].kill()
    cluster.nodes[2].start()
    cluster.notice_start(2)  # before its session ended: it is still in the ISR
    cluster.nodes[1].kill()
    cluster.elect(2, isr=(2,))
    cluster.nodes[1].start()
    cluster.notice_start(1)
    return Ending(cluster, client.acknowledged)


def b07_leader_dies_at_once() -> Ending:
    """Broker 1 dies before any follower has fetched m1."""
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    client.settle(cluster.produce(1, "m1"))
    cluster.restart(1)
    return Ending(cluster, client.acknowledged)


def b04_leader_left_alone() -> Ending:
    """Broker 1 is alone in the ISR, acknowledges, and loses its disk."""
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    cluster.now += LAG_MAX_S + 1
    hanging = cluster.produce(1, "m1")
    cluster.tick()
    cluster.settle_zk()
    assert cluster.state.isr == (1,)
    sent = cluster.produce(1, "m2")
    client.settle(hanging, sent)
    cluster.nodes[1].kill()
    cluster.nodes[1].lose_disk()
    cluster.elect(2, isr=(2,))  # unclean: no other replica is left
    cluster.nodes[1].start()
    cluster.notice_start(1)
    return Ending(cluster, client.acknowledged)


def d01_retry_at_the_next_leader() -> Ending:
    """The response for m1 is lost with broker 1; the producer retries at the next leader."""
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    cluster.produce(1, "m1", producer=7, sequence=0)
    fetch_all(cluster, 2, 3)
    cluster.restart(1)
    again = cluster.produce(cluster.state.leader, "m1", producer=7, sequence=0)
    cluster.catch_up()
    client.settle(again)
    assert client.acknowledged == ["m1"]
    return Ending(cluster, client.acknowledged)


def b03_leader_cut_from_zookeeper() -> Ending:
    """Broker 1 is cut off from ZooKeeper, wants to shrink the ISR to itself, and is replaced."""
    cluster = started(3, isr_min=1)
    client = Client(cluster)
    cluster.now += LAG_MAX_S + 1
    sent = cluster.produce(1, "m1")  # no follower fetches
    cluster.tick()
    assert [r.effect.isr for r in cluster.zk_requests if isinstance(r.effect, WriteIsr)] == [(1,)]
    client.settle(sent)
    assert client.acknowledged == [], "the ISR that counts is the one the controller sees"
    cluster.elect(2, isr=(2, 3))
    cluster.settle_zk()  # too late: the version has changed
    client.settle(sent)
    return Ending(cluster, client.acknowledged)


def a08_zombie_leader() -> Ending:
    """Broker 1 was replaced; neither broker 1 nor broker 3, which fetches from it, knows that."""
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    cluster.elect(2, isr=(2, 3), deliver=False)
    cluster.deliver_orders(2)
    sent = cluster.produce(1, "m1")
    cluster.fetch(3, rounds=2)
    assert cluster.nodes[3].values() == ["m0", "m1"]
    client.settle(sent)
    assert client.acknowledged == [], "2 is still in the ISR of the leader that was"
    held = cluster.ask(3)
    assert held is not None
    cluster.deliver_orders(3)
    # Broker 3 follows broker 2 now: its former fetch has an old epoch, and broker 1 refuses the
    # new.
    assert held.target.leader_epoch == 0
    assert cluster.ask(3) is not None
    answer = cluster.serve(cluster.ask(3) or held, at=1)
    assert answer is not None
    assert answer.error is ErrorCode.UNKNOWN_LEADER_EPOCH
    client.settle(sent)
    cluster.deliver_orders(1)
    assert cluster.outcome(sent) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    return Ending(cluster, client.acknowledged)


def a08_old_fetch_after_a_reelection() -> Ending:
    """A fetch of broker 3 from epoch 0 reaches broker 1 in epoch 2.

    In between broker 3 has truncated the records that this fetch reports.
    """
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    sent = cluster.produce(1, "m1")
    cluster.fetch(3)
    held = cluster.ask(3)
    assert held is not None
    assert held.target.offset == 2
    cluster.elect(2, deliver=False)
    cluster.deliver_orders(2)
    cluster.deliver_orders(3)
    cluster.fetch(3)
    assert cluster.nodes[3].values() == ["m0"]
    cluster.elect(1, deliver=False)
    # broker 1 does not receive the order between, and keeps m1
    cluster.orders[1] = cluster.orders[1][-1:]
    cluster.deliver_orders(1)
    cluster.deliver_orders(2)
    cluster.serve(held)
    cluster.fetch(2, rounds=3)
    client.settle(sent)
    cluster.nodes[1].kill()
    cluster.elect(3, isr=(2, 3))
    return Ending(cluster, client.acknowledged)


def a02_both_crash() -> Ending:
    """Both brokers crash; broker 2, which lacks m1, starts first and writes m2 in its place."""
    cluster = started(2, isr_min=1)
    client = Client(cluster)
    cluster.produce(1, "m1", acks=1)
    node = cluster.nodes[1]
    node.logs.checkpoint({TP: 2})  # broker 1 has checkpointed its advanced watermark
    for broker in (1, 2):
        cluster.nodes[broker].kill()
    cluster.nodes[2].start()
    cluster.elect(2, isr=(2,))  # unclean, as in the KIP
    sent = cluster.produce(2, "m2")
    client.settle(sent)
    cluster.nodes[1].start()
    cluster.notice_start(1)
    ending = Ending(cluster, client.acknowledged)
    assert ending.values == ["m0", "m2"]
    return ending


def a03_fast_failover() -> Ending:
    """KIP-279: broker 2 wrote in epoch 1 where broker 1, the leader again, has epoch 0."""
    cluster = started(2, isr_min=1)
    client = Client(cluster)
    cluster.produce(1, "only on 1 in epoch 0", acks=1)
    cluster.elect(2, deliver=False)
    cluster.deliver_orders(2)
    cluster.produce(2, "only on 2 in epoch 1", acks=1)
    cluster.elect(1, deliver=False)
    cluster.orders[1] = cluster.orders[1][-1:]  # broker 1 never learns that broker 2 led
    cluster.deliver_orders(1)
    sent = cluster.produce(1, "m1")
    cluster.deliver_orders(2)
    question = cluster.ask(2)
    assert question is not None
    assert (question.target.stage, question.target.last_epoch) == (Stage.EPOCH_END, 1)
    answer = cluster.serve(question)
    assert answer is not None
    assert answer.epoch_end == (0, 2), "the largest epoch up to 1 that 1 knows, and its end"
    cluster.take(answer)
    cluster.catch_up()
    client.settle(sent)
    return Ending(cluster, client.acknowledged)


def r13_join_before_the_start_of_the_epoch() -> Ending:
    """KAFKA-7128: the new leader's watermark is below m1, and broker 3, without m1, reaches it."""
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    sent = cluster.produce(1, "m1")
    cluster.fetch(2)
    cluster.now += LAG_MAX_S + 1
    told = cluster.ask(2)
    assert told is not None
    cluster.serve(told)  # the response with the new watermark is lost
    cluster.tick()
    cluster.settle_zk()
    client.settle(sent)
    assert client.acknowledged == ["m1"]
    cluster.nodes[1].kill()
    cluster.notice_death(1)
    assert cluster.state.isr == (2,)
    cluster.fetch(3)  # broker 3 agrees with broker 2
    question = cluster.ask(3)
    assert question is not None
    assert question.target.offset == 1
    cluster.serve(question)  # lost again, but broker 2 knows broker 3's offset
    cluster.settle_zk()
    cluster.nodes[2].kill()
    cluster.notice_death(2)
    for broker in (1, 2):
        cluster.nodes[broker].start()
        cluster.notice_start(broker)
    return Ending(cluster, client.acknowledged)


def a11_diverging_fetch() -> Ending:
    """Broker 1 returns with a longer, diverging log, whose end must not count at broker 2."""
    cluster = started(3, isr_min=2)
    client = Client(cluster)
    for number in range(5):
        cluster.produce(1, f"tail {number}", acks=1)
    cluster.elect(2, isr=(1, 2))
    sent = cluster.produce(2, "m1")
    question = cluster.ask(1)
    assert question is not None
    assert question.target.stage is Stage.EPOCH_END
    # This follower fetches without asking for the epoch's end, as one that truncates on fetch
    # (KIP-595).
    target = question.target
    result = cluster.nodes[2].replicas.fetch(
        target.tp,
        replica_id=1,
        offset=target.offset,
        bytes_max=1000,
        current_leader_epoch=target.leader_epoch,
        last_fetched_epoch=target.last_epoch,
    )
    assert result.diverging == (0, 1)
    assert result.records == []
    client.settle(sent)
    assert client.acknowledged == [], "1 does not hold m1, however long its log is"
    cluster.catch_up()
    client.settle(sent)
    assert client.acknowledged == ["m1"]
    cluster.nodes[2].kill()
    cluster.notice_death(2)
    cluster.nodes[2].start()
    cluster.notice_start(2)
    return Ending(cluster, client.acknowledged)


SCHEDULES: list[Callable[[], Ending]] = [
    a01_two_leaders_die,
    a01_as_in_kip_101,
    a02_both_crash,
    a03_fast_failover,
    a08_old_fetch_after_a_reelection,
    a08_zombie_leader,
    a11_diverging_fetch,
    b03_leader_cut_from_zookeeper,
    b04_leader_left_alone,
    b07_leader_dies_at_once,
    d01_retry_at_the_next_leader,
    r13_join_before_the_start_of_the_epoch,
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.__name__)
def test_the_correct_replica_survives(schedule: Callable[[], Ending]) -> None:
    """No acknowledged record is lost or doubled, and the replicas agree in the end."""
    schedule().assert_good()


@pytest.mark.parametrize(
    ("mutant", "schedule", "lost", "doubled"),
    [
        ("ack-on-local-append", b07_leader_dies_at_once, ["m1"], []),
        ("truncate-to-hw-loss", a01_two_leaders_die, ["m1"], []),
        ("truncate-to-hw-loss", a01_as_in_kip_101, ["m1"], []),
        ("no-min-isr-check", b04_leader_left_alone, ["m1", "m2"], []),
        ("pstate-not-replicated", d01_retry_at_the_next_leader, [], ["m1"]),
    ],
)
def test_a_mutant_does_not(
    mutant: str, schedule: Callable[[], Ending], lost: list[str], doubled: list[str]
) -> None:
    """Each mutant fails under its schedule, with the loss or duplicate that it is known for."""
    mutants.plant([mutant])
    ending = schedule()
    assert (ending.lost, ending.doubled) == (lost, doubled)


def truncates_once(
    leader: tuple[int, int], own: tuple[int, int], log_end: int, high_watermark: int
) -> follower.Truncation:
    """Truncate by KIP-101 without KIP-279: by the offset alone, and without a second request."""
    return follower.Truncation(min(leader[1], log_end), agreed=True)


@pytest.mark.parametrize(
    ("rule", "fault", "schedule", "shows"),
    [
        (
            (fencing, "current_leader_epoch"),
            lambda request_epoch, known_epoch: ErrorCode.NONE,
            a08_old_fetch_after_a_reelection,
            r"\['m1'\] == \[\]",
        ),
        (
            (follower, "truncation_point"),
            truncates_once,
            a03_fast_failover,
            "all replicas agree in the end",
        ),
        ((isr, "reports_log_end"), lambda *_: True, a11_diverging_fetch, "however long its log is"),
        (
            (isr, "may_join"),
            lambda end, mark, *_: end >= mark,
            r13_join_before_the_start_of_the_epoch,
            r"\['m1'\] == \[\]",
        ),
        ((isr, "maximal"), lambda _, new: new, b03_leader_cut_from_zookeeper, "lacks a member"),
    ],
    ids=["A08", "A03", "A11", "R13", "B03"],
)
def test_other_faults_show(
    monkeypatch: pytest.MonkeyPatch,
    rule: tuple[ModuleType, str],
    fault: Callable[..., object],
    schedule: Callable[[], Ending],
    shows: str,
) -> None:
    """Each schedule fails without the rule that it tests: otherwise it would prove nothing."""
    monkeypatch.setattr(*rule, fault)
    with pytest.raises(AssertionError, match=shows):
        schedule().assert_good()
