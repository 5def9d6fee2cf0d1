"""Which links a partition cuts, and how it is proved."""

import dataclasses
import random
from typing import Any

import pytest

from model.layout import Layout, with_kraft, with_zookeeper
from nemesis import partition
from nemesis.draws import ClusterShape
from nemesis.package import Environment
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")

A, B, C, D, E = (f"broker-{number}" for number in range(1, 6))
THREE, FIVE = (A, B, C), (A, B, C, D, E)


def both(*pairs: tuple[str, str]) -> set[tuple[str, str]]:
    return {*pairs, *((target, source) for source, target in pairs)}


def typed(fault: str, options: dict[str, Any]) -> Any:
    return partition.PACKAGE.typed(fault, options)


@pytest.mark.parametrize(
    ("fault", "nodes", "options", "lost"),
    [
        ("partition-one", [A], {}, both((A, B), (A, C))),
        ("partition-one", [A], {"from": ["zookeeper"]}, both((A, "zookeeper"))),
        (
            "partition-one",
            [A],
            {"from": ["brokers", "clients"]},
            both((A, B), (A, C), (A, "clients")),
        ),
        ("partition-leader", [B], {}, both((B, A), (B, C))),
        ("partition-zookeeper", [A, B], {}, both((A, "zookeeper"), (B, "zookeeper"))),
        ("partition-clients", [C], {}, both((C, "clients"))),
        ("partition-halves", [A], {}, both((A, B), (A, C))),
        (
            "partition-halves",
            [A],
            {"zookeeper": "rest"},
            both((A, B), (A, C), (A, "zookeeper")),
        ),
        ("partition-majorities-ring", [A, B, C], {}, {(C, A), (A, B), (B, C)}),
        ("partition-one-way", [A], {}, {(A, B), (A, C)}),
        ("partition-one-way", [A], {"direction": "in"}, {(B, A), (C, A)}),
        ("partition-one-way", [A], {"from": ["zookeeper"]}, {(A, "zookeeper")}),
        ("partition-one-way", [A], {"from": [C, "clients"]}, {(A, C), (A, "clients")}),
        ("partition-one", [A], {"from": [A, B]}, both((A, B))),
    ],
)
def test_cuts(
    fault: str, nodes: list[str], options: dict[str, Any], lost: set[tuple[str, str]]
) -> None:
    """Each kind of partition cuts exactly these directed links, each once."""
    cuts = partition.cuts(fault, nodes, typed(fault, options), with_zookeeper(3))
    assert set(cuts) == lost
    assert len(cuts) == len(lost)


@pytest.mark.parametrize(
    ("layout", "target", "lost"),
    [
        (with_zookeeper(3), A, both((A, "zookeeper"))),
        (
            with_kraft(3, 3, combined=False),
            "controller-2",
            both(("controller-2", "controller-1"), ("controller-2", "controller-3")),
        ),
        (
            with_kraft(2, 2, combined=True),
            A,
            both((A, "controller-2"), ("controller-1", B)),
        ),
    ],
)
def test_the_metadata_quorum_is_zookeeper_or_the_controllers(
    layout: Layout, target: str, lost: set[tuple[str, str]]
) -> None:
    """A plan that names the metadata quorum cuts the same links as one for this coordination."""
    options = typed("partition-one", {"from": ["metadata-quorum"]})
    assert set(partition.cuts("partition-one", [target], options, layout)) == lost
    assert partition.unknown_party(options, [target], Environment(layout, FakeCluster, "x")) is None
    alone = Environment(Layout(layout.brokers), FakeCluster, "x")
    assert "from = metadata-quorum" in str(partition.unknown_party(options, [A], alone))


def test_unknown_kind() -> None:
    """An unknown kind of partition is an error."""
    with pytest.raises(ValueError, match="no such partition: partition-up"):
        partition.cuts("partition-up", [A], partition.LinkOptions(), with_zookeeper(3))


@pytest.mark.parametrize("brokers", [THREE, FIVE, (*FIVE, "broker-6", "broker-7")])
def test_ring_leaves_each_a_different_majority(brokers: tuple[str, ...]) -> None:
    """Every node hears a majority, and no two hear the same one."""
    lost = set(partition.majorities_ring(brokers))
    heard = [frozenset(other for other in brokers if (other, node) not in lost) for node in brokers]
    assert all(node in hears for node, hears in zip(brokers, heard, strict=True))
    assert {len(hears) for hears in heard} == {len(brokers) // 2 + 1}
    assert len(set(heard)) == len(brokers)


async def test_cut_is_proved_and_healed(cluster: FakeCluster, rng: random.Random) -> None:
    """Every link is silent while it lasts, and answers afterwards."""
    applied = await apply(partition, cluster, "partition-one", [A], {"way": "cut"}, rng)
    assert applied.effect.proved
    assert applied.effect.how.startswith("4 of 4 directed links left a probe unanswered: ")
    assert +cluster.cuts == dict.fromkeys(both((A, B), (A, C)), 1)
    assert (await partition.heal(cluster, applied)).proved
    assert not +cluster.cuts


async def test_down_is_proved_and_healed(cluster: FakeCluster, rng: random.Random) -> None:
    """A link that is down refuses connections, and is closed once per pair of nodes."""
    applied = await apply(
        partition, cluster, "partition-leader", "leader:x-0", {"way": "down"}, rng
    )
    assert applied.targets == (C,)
    assert applied.effect.proved
    assert +cluster.refused == {(A, C): 1, (B, C): 1}
    assert (await partition.heal(cluster, applied)).proved
    assert not +cluster.refused


@pytest.mark.parametrize("way", ["cut", "down"])
async def test_without_effect_it_is_not_proved(
    cluster: FakeCluster, rng: random.Random, way: str
) -> None:
    """Links that still answer prove nothing."""
    cluster.immortal = True
    applied = await apply(partition, cluster, "partition-one", [A], {"way": way}, rng)
    assert not applied.effect.proved


async def test_dead_ends_do_not_count(cluster: FakeCluster, rng: random.Random) -> None:
    """A link to a node that is down proves nothing."""
    cluster.down = {B}
    applied = await apply(partition, cluster, "partition-one", [A], {}, rng)
    assert applied.effect.proved
    assert "3 of 4" in applied.effect.how
    assert "1 lead to nodes that are down" in applied.effect.how
    cluster.down = {A, B, C}
    applied = await apply(partition, cluster, "partition-one", [A], {}, rng)
    assert not applied.effect.proved


@pytest.mark.parametrize(("way", "broken"), [("cut", "cuts"), ("down", "refused")])
async def test_a_mend_leaves_the_cut_of_another(
    cluster: FakeCluster, rng: random.Random, way: str, broken: str
) -> None:
    """The heal of one of two faults on a link removes its own cut only, also if repeated.

    It does not wait for an answer that the other fault prevents.
    """
    one = await apply(partition, cluster, "partition-clients", [A], {"way": way}, rng)
    other = await apply(partition, cluster, "partition-clients", [A], {"way": way}, rng)
    cluster.probes.clear()
    for _ in range(3):
        healed = await partition.heal(cluster, one)
        assert healed.proved
        assert healed.how.startswith("0 of ")
        assert "hidden by other faults" in healed.how
    assert not cluster.probes
    assert set((+getattr(cluster, broken)).values()) == {1}
    healed = await partition.heal(cluster, other)
    assert healed.proved
    assert not healed.how.startswith("0 of ")
    assert (await partition.heal(cluster, one)).proved
    assert set(getattr(cluster, broken).values()) == {0}


async def test_a_mend_that_fails_goes_on_where_it_stopped(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heal that is repeated after an error does not restore a link a second time."""
    applied = await apply(partition, cluster, "partition-one", [A], {"way": "cut"}, rng)
    heal, asked = cluster.heal, 0

    async def failing(source: str, target: str) -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise OSError("toxiproxy-server was silent")
        await heal(source, target)

    monkeypatch.setattr(cluster, "heal", failing)
    with pytest.raises(OSError, match="silent"):
        await partition.heal(cluster, applied)
    assert (await partition.heal(cluster, applied)).proved
    assert set(cluster.cuts.values()) == {0}


def test_draw_knows_every_kind() -> None:
    """All kinds are drawn, each with links; a single broker loses ZooKeeper or clients."""
    rng = random.Random(5)
    drawn = [partition.draw(rng, ClusterShape(with_zookeeper(3), ("x-0",))) for _ in range(300)]
    assert {fault.fault for fault in drawn} == set(partition.FAULTS)
    for fault in drawn:
        nodes = fault.targets if isinstance(fault.targets, list) else [B]
        assert partition.cuts(
            fault.fault, nodes, typed(fault.fault, fault.options), with_zookeeper(3)
        )
    lone = [partition.draw(rng, ClusterShape(with_zookeeper(1))) for _ in range(50)]
    assert {fault.fault for fault in lone} == {"partition-zookeeper", "partition-clients"}
    keyless = [partition.draw(rng, ClusterShape(with_zookeeper(3))) for _ in range(100)]
    assert "partition-leader" not in {fault.fault for fault in keyless}


class Kept(FakeCluster):
    """A cluster that cuts links between nodes only."""

    @classmethod
    def why_clients_stay(cls) -> str:
        return "a label is missing"


@pytest.mark.parametrize(
    ("fault", "options"),
    [("partition-clients", {}), ("partition-one", {"from": ["brokers", "clients"]})],
)
def test_clients_that_keep_their_links(fault: str, options: dict[str, Any]) -> None:
    """A schedule that cuts links of clients is refused, with the cluster's reason."""
    [found] = [each for each in partition.PACKAGE.faults if each.name == fault]
    here = Environment(with_zookeeper(3), Kept, "external")
    assert found.refusal([A], options, here) == (
        "links of clients cannot be cut: a label is missing"
    )
    assert found.refusal([A], options, Environment(with_zookeeper(3), FakeCluster, "x")) is None


def test_draw_without_clients() -> None:
    """The same partitions are drawn, but for the links of clients; each still has links."""
    three = ClusterShape(with_zookeeper(3), ("x-0",))
    for seed in range(200):
        drawn = partition.draw(random.Random(seed), three)
        kept = dataclasses.replace(three, cuts_clients=False)
        fault = partition.draw(random.Random(seed), kept)
        nodes = fault.targets if isinstance(fault.targets, list) else [B]
        lost = partition.cuts(
            fault.fault, nodes, typed(fault.fault, fault.options), with_zookeeper(3)
        )
        assert lost
        assert "clients" not in {end for cut in lost for end in cut}
        if drawn.fault != "partition-clients":
            assert (fault.fault, fault.duration_s) == (drawn.fault, drawn.duration_s)
    lone = ClusterShape(with_zookeeper(1), cuts_clients=False)
    drawn_of_one = {partition.draw(random.Random(seed), lone).fault for seed in range(20)}
    assert drawn_of_one == {"partition-zookeeper", "partition-one"}
    assert partition.room(lone)
    assert not partition.room(ClusterShape(Layout((A,)), cuts_clients=False))
    combined = ClusterShape(with_kraft(1, 1, combined=True), cuts_clients=False)
    assert not partition.room(combined), "its only controller is in the only broker"


@pytest.mark.parametrize(("brokers", "expected"), [(0, True), (3, False)])
def test_servers_may_lose_their_clients_alone(brokers: int, expected: bool) -> None:
    """Without brokers, clients are clients of servers, whose sessions then move to others."""
    shape = ClusterShape(with_zookeeper(brokers, 3, 0))
    draws = (partition.draw(random.Random(seed), shape) for seed in range(300))
    drawn = [each for each in draws if "zookeeper-" in str(each.targets) or "zk-" in each.targets]
    assert any(each.fault == "partition-clients" for each in drawn) is expected
    assert any(each.options.get("from") == ["zookeeper"] for each in drawn)
