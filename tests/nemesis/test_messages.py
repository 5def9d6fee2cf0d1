"""Faults on single messages, on a cluster in memory."""

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.capabilities.network import CanInterceptMessages
from model.layout import with_zookeeper
from nemesis import messages
from nemesis.draws import ClusterShape
from nemesis.package import Environment
from tests.nemesis.conftest import APIS, FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")

PRODUCE = {"api": "Produce", "from": "clients"}


@pytest.mark.parametrize(
    ("part", "noun"),
    [({}, "request"), ({"part": "request"}, "request"), ({"part": "response"}, "response")],
)
async def test_kept_and_let_go(
    cluster: FakeCluster, rng: random.Random, part: dict[str, str], noun: str
) -> None:
    """One message is held until the fault heals."""
    cluster.traffic = {("clients", "broker-3")}
    applied = await apply(messages, cluster, "hold-request", "leader:x-0", PRODUCE | part, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == f"Produce of clients to broker-3: the {noun} is held"
    assert cluster.held == {0}
    healed = await messages.heal(cluster, applied)
    assert (healed.proved, healed.how, cluster.held) == (True, "released", set())
    assert (await messages.heal(cluster, applied)).how == "no message was held"


async def test_lost(cluster: FakeCluster, rng: random.Random) -> None:
    """One response is dropped for good: there is nothing to heal."""
    cluster.traffic = {("broker-2", "broker-1")}
    options = {"api": "Fetch", "from": "brokers"}
    applied = await apply(messages, cluster, "drop-response", ["broker-1"], options, rng)
    assert applied.effect.how == "Fetch of broker-2 to broker-1: the response is dropped"
    assert cluster.log == ["drop-response Fetch broker-2>broker-1 broker-3>broker-1"]
    assert (await messages.heal(cluster, applied)).proved


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        ("drop-request", "the request is dropped"),
        ("duplicate-request", "the request is delivered twice"),
    ],
)
async def test_faults_for_schedules_by_hand(
    cluster: FakeCluster, rng: random.Random, fault: str, done: str
) -> None:
    """One request is lost or delivered twice for good; ``naming`` selects it by a string."""
    cluster.traffic = {("clients", "broker-2")}
    options = {"api": "EndTxn", "naming": "thread-0"}
    applied = await apply(messages, cluster, fault, ["broker-2"], options, rng)
    assert applied.effect.how == f"EndTxn of clients to broker-2: {done}"
    assert cluster.namings == ["thread-0"]
    assert (await messages.heal(cluster, applied)).proved


async def test_corrupted(cluster: FakeCluster, rng: random.Random) -> None:
    """One request is corrupted for good."""
    cluster.traffic = {("clients", "broker-1")}
    applied = await apply(messages, cluster, "corrupt-request", ["broker-1"], PRODUCE, rng)
    assert applied.effect.how == "Produce of clients to broker-1: one bit of the request is flipped"
    assert (await messages.heal(cluster, applied)).proved


@pytest.mark.parametrize(
    ("asks", "link"), [("controller", "broker-1>broker-3"), ("broker-2", "broker-2>broker-3")]
)
async def test_who_asks(cluster: FakeCluster, rng: random.Random, asks: str, link: str) -> None:
    """The sender is given by a role or by a node id."""
    options = {"api": "LeaderAndIsr", "from": asks}
    await apply(messages, cluster, "hold-request", ["broker-3"], options, rng)
    assert cluster.log[0] == f"hold-request LeaderAndIsr {link}"


async def test_a_controller_is_given_something_to_say(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """While the fault waits for a controller's request, the session of another broker ends."""
    cluster.traffic = {("broker-1", "broker-3")}
    options = {"api": "LeaderAndIsr", "from": "controller", "stir": True}
    before = dict(cluster.registered)
    applied = await apply(messages, cluster, "hold-request", ["broker-3"], options, rng)
    assert applied.effect.how == "LeaderAndIsr of broker-1 to broker-3: the request is held"
    changed = {node for node, number in cluster.registered.items() if number != before.get(node)}
    assert changed == {"broker-2"}


async def test_or_other_leaders_have_to_be_told_of(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """With ``leaders`` no session ends; ``again_s`` elects the former leaders again."""
    cluster.place("x-0", 1, 2, 3)
    cluster.traffic = {("broker-1", "broker-3")}
    options = {"api": "LeaderAndIsr", "from": "controller", "stir": "leaders"}
    before = dict(cluster.registered)
    applied = await apply(messages, cluster, "hold-request", ["broker-3"], options, rng)
    assert applied.effect.proved
    assert (cluster.placed["x-0"].leader, cluster.registered) == ("broker-2", before)
    await apply(messages, cluster, "hold-request", ["broker-3"], options | {"again_s": 0.0}, rng)
    elections = [line for line in cluster.log if line.startswith("reassign")]
    assert [line[19:27] for line in elections[-2:]] == ["broker-1", "broker-2"]
    assert cluster.placed["x-0"].leader == "broker-2"


async def test_a_topic_may_be_created_again_meanwhile(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition may be missing when the leaders before the election are read."""
    cluster.place("x-0", 1, 2, 3)
    cluster.traffic = {("broker-1", "broker-3")}
    looks = itertools.count()
    placed = cluster.partitions

    async def partitions() -> Any:
        return () if next(looks) == 1 else await placed()

    monkeypatch.setattr(cluster, "partitions", partitions)
    options = {"api": "LeaderAndIsr", "from": "controller", "stir": "leaders"}
    applied = await apply(messages, cluster, "hold-request", ["broker-3"], options, rng)
    assert applied.effect.proved
    assert (cluster.placed["x-0"].leader, next(looks) > 2) == ("broker-2", True)


async def test_where_nobody_else_can_lead_a_session_ends(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """If no other replica can lead, a session ends instead."""
    cluster.place("x-0", 1)
    cluster.traffic = {("broker-1", "broker-3")}
    options = {"api": "LeaderAndIsr", "from": "controller", "stir": "leaders", "again_s": 0.0}
    before = dict(cluster.registered)
    applied = await apply(messages, cluster, "hold-request", ["broker-3"], options, rng)
    assert applied.effect.proved
    assert cluster.registered == before | {"broker-2": (before["broker-2"] or 0) + 2}


async def test_an_order_of_a_controller_that_was_replaced(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller's session ends once, before its held request is delivered."""
    monkeypatch.setattr(messages, "REPLACED_S", 0.0)
    cluster.traffic = {("broker-1", "broker-3")}
    options = {"api": "LeaderAndIsr", "from": "controller", "usurped": True}
    before = dict(cluster.registered)
    applied = await apply(messages, cluster, "hold-request", ["broker-3"], options, rng)
    assert cluster.registered == before
    healed = await messages.heal(cluster, applied)
    assert (healed.how, cluster.held) == ("released", set())
    after = dict(cluster.registered)
    changed = {node for node, number in after.items() if number != before.get(node)}
    assert changed == {"broker-1"}
    assert (await messages.heal(cluster, applied)).how == "no message was held"
    assert cluster.registered == after


async def test_any_broker_will_do(cluster: FakeCluster, rng: random.Random) -> None:
    """If no message comes to the target, one message to another broker is held."""
    cluster.traffic = {("clients", "broker-2")}
    applied = await apply(messages, cluster, "hold-request", ["broker-1"], PRODUCE, rng)
    assert applied.effect.how == "Produce of clients to broker-2: the request is held"
    assert cluster.held == {1}


async def test_what_does_not_come_is_replaced(cluster: FakeCluster, rng: random.Random) -> None:
    """If no message of the API comes to the target, one of ``or`` to any broker is taken."""
    cluster.traffic = {("clients", "broker-2")}
    options = {"api": "Fetch", "from": "clients", "or": ["Produce", "Metadata"]}
    applied = await apply(messages, cluster, "drop-response", ["broker-1"], options, rng)
    assert applied.effect.how == "Metadata of clients to broker-2: the response is dropped"
    first, second = cluster.log
    assert first == "drop-response Fetch clients>broker-1"
    assert second.startswith("drop-response Fetch,Produce,Metadata clients>broker-1 clients>")
    cluster.traffic = set()
    applied = await apply(messages, cluster, "drop-response", ["broker-1"], options, rng)
    assert applied.effect.how == "no Fetch or Produce or Metadata came"


async def test_followers_of_nobody_do_not_fetch(cluster: FakeCluster, rng: random.Random) -> None:
    """If no follower fetches, a message of clients is taken in the end."""
    cluster.traffic = {("clients", "broker-2")}
    options = {"api": "Fetch", "from": "brokers", "or": ["Metadata"]}
    applied = await apply(messages, cluster, "drop-response", ["broker-1"], options, rng)
    assert applied.effect.how == "Metadata of clients to broker-2: the response is dropped"
    assert len(cluster.log) == 3


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """Without a message there is no proof, and nothing to heal."""
    applied = await apply(messages, cluster, "hold-request", ["broker-1"], PRODUCE, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "no Produce came")
    assert (await messages.heal(cluster, applied)).how == "no message was intercepted"


@given(seed=st.integers(0), brokers=st.integers(1, 3))
def test_draws(seed: int, brokers: int) -> None:
    """A periodic message is drawn, or a controller's request, alone and with a reason."""
    shape = ClusterShape(with_zookeeper(brokers), ("x-0",))
    fault = messages.draw(random.Random(seed), shape)
    assert fault.alone is bool(fault.options.get("stir"))
    if fault.options.get("stir"):
        assert fault.options["api"] in messages.ORDERS
        assert fault.options["from"] == "controller"
        assert brokers > 2
    else:
        assert brokers > 1 or fault.options["from"] == "clients"
        asked = {fault.options["api"], *fault.options.get("or", ())}
        if fault.fault != "corrupt-request":
            by_clients = {*shape.asked, messages.LAST_RESORT}
            if fault.options["from"] == "brokers":
                asked -= {"WriteTxnMarkers", "OffsetForLeaderEpoch"}
                assert asked == {"Fetch", messages.LAST_RESORT}
            else:
                assert asked == by_clients
    assert (fault.duration_s > 0) is (fault.fault == "hold-request")
    if fault.fault == "corrupt-request":
        assert (fault.options["api"], fault.options["from"]) == ("Produce", "clients")


def test_an_answer_that_nobody_gives_is_not_waited_for() -> None:
    """With ``acks=0`` no fault waits for the response to a Produce."""
    shape = ClusterShape(with_zookeeper(3), ("x-0",), acknowledged=False)
    drawn = [messages.draw(random.Random(seed), shape) for seed in range(300)]
    answers = [each for each in drawn if each.fault != "corrupt-request"]
    assert {each.options["api"] for each in answers} == {
        *messages.BETWEEN_BROKERS,
        *messages.ORDERS,
    }
    assert not any("Produce" in each.options.get("or", ()) for each in answers)


def test_what_is_asked_is_the_workloads() -> None:
    """The workload's APIs are drawn, and requests between brokers only if there are followers."""
    for replicas in (1, 3):
        shape = ClusterShape(with_zookeeper(3), asked=("EndTxn", "Heartbeat"), replicas=replicas)
        drawn = Counter(
            (each.options["api"], each.options["from"])
            for each in (messages.draw(random.Random(seed), shape) for seed in range(1000))
            if each.fault != "corrupt-request" and not each.alone
        )
        expected = {("EndTxn", "clients"), ("Heartbeat", "clients")}
        between = {(api, "brokers") for api in messages.BETWEEN_BROKERS} if replicas > 1 else set()
        assert set(drawn) == expected | between
        assert min(drawn[each] for each in expected) > 100
        assert all(drawn[each] > 20 for each in between)


def test_all_are_drawn() -> None:
    """Each fault on messages has its share."""
    shape = ClusterShape(with_zookeeper(3), ("x-0",))
    drawn = Counter(messages.draw(random.Random(seed), shape).fault for seed in range(1000))
    assert set(drawn) == {fault.name for fault in messages.PACKAGE.faults if fault.is_drawn}
    assert set(messages.PACKAGE.names) - set(drawn) == {"drop-request", "duplicate-request"}
    assert min(drawn.values()) >= 20


@given(seed=st.integers(0))
def test_draws_for_a_target_that_intercepts_only_clients(seed: int) -> None:
    """Without messages of brokers, every drawn fault is on one of clients, and none is alone."""
    shape = ClusterShape(with_zookeeper(3), ("x-0",), intercepts_brokers=False)
    fault = messages.draw(random.Random(seed), shape)
    assert (fault.options["from"], fault.alone) == ("clients", False)
    assert not {"stir", "usurped", "again_s"} & set(fault.options)


class OnlyClients(CanInterceptMessages, Protocol):
    """A class of clusters that intercept only messages of clients, and end no session."""

    @classmethod
    def apis(cls) -> Sequence[str]:
        return APIS

    @classmethod
    def intercepts_brokers(cls) -> bool:
        return False


class NoSessions(OnlyClients, Protocol):
    """A class of clusters that end no session."""

    @classmethod
    def intercepts_brokers(cls) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        (OnlyClients, {}, None),
        (NoSessions, {"from": "controller"}, None),
        (
            OnlyClients,
            {"from": "controller"},
            "from = controller: must be clients, because the target here intercepts no messages of"
            " brokers",
        ),
        (
            NoSessions,
            {"stir": "leaders"},
            "stir = leaders: must be false, because the target here cannot end the ZooKeeper"
            " session of a broker",
        ),
        (
            NoSessions,
            {"usurped": True},
            "usurped = true: must be false, because the target here cannot end the ZooKeeper"
            " session of a broker",
        ),
    ],
)
def test_what_a_target_does_not_offer_is_refused(
    kind: type, options: dict[str, object], why: str | None
) -> None:
    """A refusal names the option and the target."""
    [hold, *_] = messages.PACKAGE.faults
    environment = Environment(with_zookeeper(1), kind, "here")
    assert hold.refusal(["broker-1"], {"api": "Fetch"} | options, environment) == why
