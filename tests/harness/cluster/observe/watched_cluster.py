"""The replica tests' pure cluster, with all invariants checked after every message."""

from typing import Any, ClassVar

import msgspec

from broker_impl.api.cluster_view import ClusterView
from broker_impl.node.snapshot import BrokerSnapshot, SnapshotReader
from broker_impl.wire.types import BrokerId
from checkers.invariants.step import Rules
from checkers.invariants.watch import Watch
from harness.cluster.observe.snapshots import Snapshots
from model.snapshot import PartitionState, ZooKeeperState
from model.violation import Violation
from tests.broker_impl.replica.pure_cluster import Node, PureCluster


class WatchedCluster(PureCluster):
    """A cluster that checks all invariants; ``seen`` collects the violations of all instances."""

    seen: ClassVar[list[Violation]] = []
    raises: ClassVar[bool] = False
    """Raise an AssertionError at the first violation."""
    unclean: ClassVar[bool] = False
    """Allow unclean elections."""
    last: ClassVar["WatchedCluster"]
    """The latest instance."""

    def __init__(self, brokers: int, *, isr_min: int) -> None:
        self.snapshots = Snapshots()
        self.watch = Watch(Rules(unclean_elections=self.unclean, isr_min=isr_min))
        WatchedCluster.last = self
        self.looks = 0
        self.known: dict[BrokerId, int] = {}
        super().__init__(brokers, isr_min=isr_min)
        self.look()

    def look(self) -> None:
        """Take a snapshot and check the invariants."""
        self.looks += 1
        for number, node in self.nodes.items():
            if node.up and self.known.get(number) != node.incarnation:
                self.known[number] = node.incarnation
                self._began(number, node)
        state = self.state
        partition = PartitionState(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=tuple(state.isr),
            replicas=self.brokers,
            controller_epoch=1,
            version=state.version,
            birth=1,
        )
        zookeeper = ZooKeeperState(partitions={"t-0": partition}, controller_epoch=1)
        now = self.snapshots.take(self.looks, producers=True)
        violations = list(self.watch.step(msgspec.structs.replace(now, zookeeper=zookeeper)))
        self.seen.extend(violations)
        assert not (violations and self.raises), violations[0].invariant

    def _began(self, number: BrokerId, node: Node) -> None:
        disk, incarnation = node.disk, node.incarnation
        reader = SnapshotReader(lambda _, path, at, size: disk.open(path).pread(at, size))
        view = ClusterView()

        def look(producers: bool, settings: bool) -> BrokerSnapshot:
            return reader.look(
                *(node.replicas, node.logs.logs, view),
                term=None,
                producers=producers,
                unmarked={},
                settings=None,
            )

        self.snapshots.broker_started(
            number, look, lambda: node.up and node.incarnation == incarnation
        )


def _looking(name: str) -> Any:
    def method(self: WatchedCluster, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(super(WatchedCluster, self), name)(*args, **kwargs)
        self.look()
        return answer

    return method


for _name in ("deliver_orders", "serve_zk", "take_zk", "serve", "take", "produce", "tick"):
    setattr(WatchedCluster, _name, _looking(_name))
