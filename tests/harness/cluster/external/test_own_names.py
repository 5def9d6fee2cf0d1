"""A run sees and removes its own topics and groups, and no others."""

import pytest

from harness.cluster.external.own_names import OwnView, remove_names
from harness.cluster.observe.metadata_view import Registration
from model.capabilities.control_plane import Partition
from model.roles import NodeId
from tests.harness.cluster.external.conftest import FakeCluster

P = "faultline-00c0ffee-"


async def test_only_own_names_are_removed(cluster: FakeCluster) -> None:
    cluster.topics = [f"{P}topic0", "orders", f"{P}topic1", "faultline-other-topic0"]
    cluster.groups = {1: [f"{P}group0"], 2: ["billing", f"{P}group1"]}
    addresses = [broker.address for broker in cluster.brokers.values()]
    removed = await remove_names(addresses, P)
    assert cluster.topics == ["orders", "faultline-other-topic0"]
    assert cluster.groups == {1: [], 2: ["billing"]}
    assert removed.topics == (f"{P}topic0", f"{P}topic1")
    assert set(removed.groups) == {f"{P}group0", f"{P}group1"}
    assert (removed.left, removed.is_any) == ((), True)
    assert removed.described == "2 topics and 2 groups from the cluster"


async def test_what_cannot_be_removed_is_named(cluster: FakeCluster) -> None:
    """A group with members is tried again until the time is up, and then named with its error."""
    cluster.groups = {1: [f"{P}group0"], 2: []}
    cluster.busy = {f"{P}group0"}
    addresses = [broker.address for broker in cluster.brokers.values()]
    removed = await remove_names(addresses, P, timeout_s=0.2)
    assert removed.left == (f"topics and groups {P}*: {P}group0: NON_EMPTY_GROUP",)
    assert not removed.is_any


async def test_no_broker_answers(cluster: FakeCluster) -> None:
    addresses = [broker.address for broker in cluster.brokers.values()]
    cluster.close()
    removed = await remove_names(addresses, P, timeout_s=0.2)
    assert removed.left == (f"topics and groups {P}*: no broker answers",)


async def test_an_empty_prefix_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="would remove everything"):
        await remove_names([], "")


def partition(key: str) -> Partition:
    return Partition(key=key, replicas=("broker-1",), leader="broker-1", leader_epoch=0, isr=())


class FakeView:
    """A view of a cluster with topics of several users."""

    def __init__(self) -> None:
        keys = (f"{P}topic0-0", "orders-0", "__consumer_offsets-3", "__audit-0")
        self.found = {key: partition(key) for key in keys}
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True

    async def controller(self) -> NodeId | None:
        return "broker-1"

    async def live(self) -> tuple[NodeId, ...]:
        return ("broker-1",)

    async def registration(self, broker: NodeId) -> Registration | None:
        return None

    async def partition(self, key: str) -> Partition | None:
        return self.found.get(key)

    async def partitions(self) -> tuple[Partition, ...]:
        return tuple(self.found.values())


async def test_the_view() -> None:
    """Own topics have the names of the history; internal ones keep theirs; others are missing."""
    view = OwnView(FakeView(), P)
    assert [each.key for each in await view.partitions()] == ["topic0-0", "__consumer_offsets-3"]
    found = await view.partition("topic0-0")
    assert found == partition("topic0-0")
    assert await view.partition("orders-0") is None
    internal = await view.partition("__consumer_offsets-3")
    assert internal == partition("__consumer_offsets-3")
    assert (await view.controller(), await view.live()) == ("broker-1", ("broker-1",))
    assert await view.registration("broker-1") is None
