"""Interfaces between the harness and what it drives: a workload's client, a cluster's capabilities.

A nemesis requires some of the ``Can…`` and ``Has…`` protocols, and a target implements those it can
offer. A plan with a fault that its target does not offer is refused. All capabilities are
``runtime_checkable``, so that ``isinstance`` and ``issubclass`` work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from model.link_faults import LinkFaults
from model.op import Op

NodeId = str
"""A node's name: ``broker-1`` … ``broker-N``, ``zookeeper``; ``clients`` stands for all clients."""

Coordinated = Literal["group", "transaction"]
"""What a broker can be the coordinator of."""

CLIENTS: NodeId = "clients"
ZOOKEEPER: NodeId = "zookeeper"


def broker(number: int) -> NodeId:
    """Return the node id of the broker with this ``broker.id``; ids start at 1."""
    return f"broker-{number}"


def number(broker: NodeId) -> int:
    """Return the ``broker.id`` of a broker."""
    return int(broker.rpartition("-")[2])


def client(name: str) -> NodeId:
    """Return the node id of a client that has its own listeners, and therefore its own links."""
    return f"{CLIENTS}-{name}"


class Client(Protocol):
    """A logical process of a workload; it ends with :meth:`close` or an operation in ``info``."""

    @property
    def alive(self) -> bool:
        """False once the client must not act again, even if no operation ended in ``info``."""
        ...

    async def open(self) -> None: ...
    async def invoke(self, op: Op) -> Op:
        """Perform the operation and return ``op`` with its outcome as type, value and error.

        The interpreter sets the index and the time.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Cluster(Protocol):
    """A cluster under test, on any target."""

    @property
    def nodes(self) -> tuple[NodeId, ...]: ...
    @property
    def brokers(self) -> tuple[NodeId, ...]: ...
    def bootstrap(self, client: str | None = None) -> str:
        """Return ``host:port,…`` for clients; ``client`` selects that client's own listeners."""
        ...

    async def start(self) -> None:
        """Start; return once a controller is elected and a replicated topic can be written."""
        ...

    async def stop(self) -> None:
        """Stop and remove all nodes, whatever state they are in."""
        ...

    async def recover(self, timeout_s: float) -> bool:
        """Start the nodes that are down; wait until every partition has a leader and a full ISR.

        Call this after all faults are healed. Returns whether the cluster reached that state in
        time.
        """
        ...


@runtime_checkable
class CanKill(Protocol):
    async def kill(self, node: NodeId) -> None: ...
    async def start_node(self, node: NodeId) -> None: ...
    async def is_running(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanRestart(Protocol):
    async def stop_node(self, node: NodeId) -> int:
        """Stop the node with SIGTERM; return its exit status, negative if it had to be killed."""
        ...

    async def start_node(self, node: NodeId) -> None: ...
    async def is_running(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanPause(Protocol):
    async def pause(self, node: NodeId) -> None: ...
    async def resume(self, node: NodeId) -> None: ...
    async def is_paused(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanCut(Protocol):
    """A target whose links can be cut.

    Links are directed: cutting ``a → b`` drops the bytes that a sends to b, regardless of which of
    them opened the connection.
    """

    async def cut(self, source: NodeId, target: NodeId) -> None: ...
    async def heal(self, source: NodeId, target: NodeId) -> None:
        """Undo one cut; the link stays cut while another fault cuts it."""
        ...

    async def heal_all(self) -> None: ...
    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        """Return the recorded effect of the active faults on the links between two nodes."""
        ...

    async def answers(self, node: NodeId) -> bool:
        """Measure whether the node answers a probe that bypasses all link faults."""
        ...

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measure whether the links between two nodes are cut; ``None`` if that cannot be decided.

        They are cut if a probe through them stays unanswered although the probed node answers a
        probe that bypasses them. This cannot be decided if the node is down, or if another fault
        makes the links too slow to wait for.
        """
        ...


@runtime_checkable
class CanRefuse(Protocol):
    """A target that can close links: connections are reset at once, and new ones are refused."""

    async def refuse(self, one: NodeId, other: NodeId) -> None: ...
    async def accept(self, one: NodeId, other: NodeId) -> None: ...
    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        """Measure whether all links between two nodes refuse connections."""
        ...


@runtime_checkable
class CanSlow(Protocol):
    """A target that can slow links: all bytes from source to target arrive later, in order.

    A link that several faults slow has the largest of their latencies.
    """

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None: ...
    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Undo one fault's latency; the latencies of other faults remain."""
        ...

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        """Measure the fastest answer to a probe over the links between two nodes, in seconds.

        Returns ``None`` when no answer came.
        """
        ...


@runtime_checkable
class CanDisconnect(Protocol):
    """A target that can take a node off the network while the node keeps running."""

    async def disconnect(self, node: NodeId) -> None: ...
    async def reconnect(self, node: NodeId) -> None:
        """Restore the node's networks; has no effect on a node that is connected."""
        ...

    async def is_disconnected(self, node: NodeId) -> bool:
        """Measure whether the node is off the network.

        It is if it is on no network of the cluster and leaves a probe that bypasses the mesh
        unanswered.
        """
        ...


@runtime_checkable
class CanFillDisk(Protocol):
    """A target on which each node has a file system of its own that is small enough to fill."""

    async def fill_disk(self, node: NodeId) -> None:
        """Fill the node's disk so that no more data can be written.

        A broker may exit, as Kafka does when its last log directory fails. The target expects such
        an exit until shortly after :meth:`free_disk`, because a write that failed just before may
        still reach the broker.
        """
        ...

    async def free_disk(self, node: NodeId) -> None:
        """Remove what filled the disk, also while the node is down.

        This does not start the node, and has no effect on a disk that was not filled.
        """
        ...

    async def disk_free_bytes(self, node: NodeId) -> int:
        """Measure the free bytes of the node's own file system, also while the node is down."""
        ...


@dataclass(frozen=True, slots=True)
class Strain:
    """A node's resource limits, and how often it reached them."""

    cpus: float
    """The current CPU limit, as the container engine reports it; 0 means none."""
    memory_bytes: int
    """The current memory limit, as the container engine reports it; 0 means none."""
    throttled_periods: int
    """The number of scheduler periods since the node's start in which its CPU was throttled."""
    memory_used_bytes: int
    """The memory in use; 0 while the node is down."""
    memory_met: int
    """Grows whenever the kernel reclaims pages because the node reached its memory limit.

    Counted since the node's start; 0 while it is down.
    """
    oom_killed: bool
    """True if the kernel's OOM killer ended the node's present or most recent process."""


@runtime_checkable
class CanSqueeze(Protocol):
    """A target that can reduce the CPU and the memory of a running node."""

    async def squeeze_cpu(self, node: NodeId, cpus: float) -> None: ...
    async def squeeze_memory(self, node: NodeId, bytes_: int) -> None:
        """Limit the node's memory; an exit by the OOM killer is expected until :meth:`release`."""
        ...

    async def release(self, node: NodeId) -> None:
        """Restore both limits; has no effect on a node whose limits are unchanged."""
        ...

    async def strain(self, node: NodeId) -> Strain:
        """Measure the node's limits and usage, also while the node is down."""
        ...


@runtime_checkable
class CanDropPackets(Protocol):
    """A target that can drop a share of a node's packets below TCP, which then retransmits them."""

    async def drop_packets(self, node: NodeId, share: float) -> None:
        """Drop ``share`` (0 to 1) of the incoming packets, and as many of the outgoing ones."""
        ...

    async def pass_packets(self, node: NodeId) -> None:
        """Remove the rule; has no effect on a node that has none or is down."""
        ...

    async def packets_dropped(self, node: NodeId) -> int | None:
        """Measure how many packets the rule itself has counted as dropped.

        Returns ``None`` when there is no rule; a node that is down has none.
        """
        ...


@runtime_checkable
class CanLosePower(Protocol):
    """A target that can cut a node's power: unsynced writes are lost, peers are not notified."""

    async def power_off(self, node: NodeId, after: int = 0, renaming: str = "") -> None:
        """Cut the power of the node's machine, at once unless ``after`` or ``renaming`` is given.

        If the node is up and ``after`` is given, the power fails right before the disk operation
        that follows ``after`` others. With ``renaming`` it fails right before the next rename of a
        file whose name ends in that suffix. If no such operation comes soon, the power fails
        anyway.
        """
        ...

    async def power_on(self, node: NodeId) -> None:
        """Restore the power. This starts no node, and has no effect on a machine that has power."""
        ...

    async def lost_bytes(self, node: NodeId) -> int | None:
        """Measure how many bytes were written but not synced when the power failed.

        Returns ``None`` while the machine has power or answers.
        """
        ...


@runtime_checkable
class CanSlowDisk(Protocol):
    """A target that can slow a node's disk; the node waits for each slow operation."""

    async def slow_disk(self, node: NodeId, seconds: float) -> None: ...
    async def quicken_disk(self, node: NodeId) -> None:
        """Restore the disk's usual speed; has no effect on a disk that was not slowed."""
        ...

    async def disk_takes_s(self, node: NodeId) -> float:
        """Measure how long a small disk operation takes, in seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Flip:
    """A bit that was flipped on a node's disk."""

    path: str
    at: int
    """The position of the byte in the file."""
    bit: int
    batch_at: int
    """The position in the file at which the record batch that holds the byte begins."""


@runtime_checkable
class CanFlipBits(Protocol):
    """A target that can flip a bit of a node's stored data."""

    async def flip_bit(self, node: NodeId, key: str) -> Flip | None:
        """Flip one bit that a batch's CRC covers, in the node's log of the partition ``key``.

        ``key`` is ``topic-partition``. Returns ``None`` when the node stores no batch of that
        partition.
        """
        ...

    async def is_damaged(self, node: NodeId, flip: Flip) -> bool:
        """Measure whether the batch at that position does not match its CRC."""
        ...

    async def flip_back(self, node: NodeId, flip: Flip) -> None:
        """Flip the bit back; has no effect where no batch is damaged."""
        ...


@runtime_checkable
class CanSetClock(Protocol):
    """A target that can step a node's wall clock, and change the rate of all its clocks."""

    async def jump_clock(self, node: NodeId, seconds: float) -> None:
        """Step the wall clock by this many seconds; a negative number sets it back."""
        ...

    async def drift_clock(self, node: NodeId, rate: float) -> None:
        """Run every clock and timer of the node at ``rate`` times real time."""
        ...

    async def correct_clock(self, node: NodeId) -> None:
        """Restore the right time and the right rate; has no effect on a clock that has both."""
        ...

    async def clock_ahead_s(self, node: NodeId) -> float:
        """Measure how far the node's wall clock is ahead of the harness's; negative if behind."""
        ...


@runtime_checkable
class CanExpire(Protocol):
    """A target that can expire a broker's ZooKeeper session while the broker itself is healthy."""

    async def expire_session(self, node: NodeId) -> bool:
        """Expire the broker's session, and return whether it has ended.

        Returns False for a node without a session, and when ZooKeeper does not answer.
        """
        ...


@runtime_checkable
class CanMeddle(Protocol):
    """A target that can delay, lose or corrupt a single message of Kafka's protocol."""

    async def meddle(
        self, links: Sequence[tuple[NodeId, NodeId]], apis: Sequence[str], what: str
    ) -> int:
        """Intercept the first message of one of these APIs on these links; return its number.

        Each link leads from the client of a request to its server. ``apis`` are names such as
        ``Produce``. The number identifies the interception in other calls. ``what`` is one of:

        - ``hold-request``, ``hold-response``: delay the message and all that follows it on its
          connection;
        - ``drop-response``: lose the response and reset its connection;
        - ``corrupt-request``: flip one bit of the request.

        Raises ``ValueError`` for an unknown API.
        """
        ...

    async def caught(self, number: int) -> str | None:
        """Measure which message was intercepted; ``None`` when there was none yet."""
        ...

    async def is_held(self, number: int) -> bool:
        """Measure whether a message is being held at the moment."""
        ...

    async def let_go(self, number: int) -> None:
        """Deliver the held message if its connection still exists; intercept no further message."""
        ...

    async def let_all_go(self) -> None: ...


@runtime_checkable
class CanHalt(Protocol):
    """A target that can hold a node at a named point of its code; its other tasks continue."""

    async def halt(self, node: NodeId, point: str) -> None:
        """Hold every task of the node that reaches this point from now on.

        Raises ``ValueError`` for an unknown point.
        """
        ...

    async def halted(self, node: NodeId, point: str) -> int:
        """Measure how many tasks of the node are waiting at the point."""
        ...

    async def go_on(self, node: NodeId, point: str) -> None:
        """Resume all tasks that wait at the point, and hold no further ones there."""
        ...

    async def all_go_on(self) -> None: ...


@runtime_checkable
class HasHealth(Protocol):
    """The health of a cluster according to ZooKeeper's current data."""

    async def is_whole(self) -> bool:
        """Return whether the cluster is completely healthy.

        It is if every broker is registered, a controller is elected, and every partition has a
        leader, a full ISR and no reassignment in progress.
        """
        ...

    async def registration(self, node: NodeId) -> int | None:
        """Return the epoch of a broker's registration, which differs for every session.

        Returns ``None`` for ZooKeeper and for a broker that is not registered.
        """
        ...

    async def in_sync_min(self, node: NodeId) -> int:
        """Return the size of the smallest ISR that contains the broker; 0 when none does.

        Returns 1 when ZooKeeper cannot be read, because the broker may be the only in-sync replica.
        """
        ...


@runtime_checkable
class HasRoles(Protocol):
    async def controller(self) -> NodeId | None: ...
    async def leader(self, key: str) -> NodeId | None:
        """Return the current leader of ``topic-partition`` according to ZooKeeper."""
        ...

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        """Return the current in-sync replicas of ``topic-partition`` according to ZooKeeper."""
        ...

    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None:
        """Return the coordinator of a group or a transactional id.

        It is the current leader, according to ZooKeeper, of the partition of the internal topic
        that the name maps to.
        """
        ...


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's assignment and state, as the controller last wrote them."""

    key: str
    """``topic-partition``."""
    replicas: tuple[NodeId, ...]
    """The assigned replicas, the preferred leader first, with those being added or removed."""
    leader: NodeId | None
    leader_epoch: int
    isr: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()

    @property
    def topic(self) -> str:
        """The topic of the partition."""
        return self.key.rpartition("-")[0]

    @property
    def target(self) -> tuple[NodeId, ...]:
        """The assigned replicas once the reassignment in progress, if any, is complete."""
        return tuple(node for node in self.replicas if node not in self.removing)

    @property
    def is_moving(self) -> bool:
        """True while a reassignment adds or removes replicas."""
        return bool(self.adding or self.removing)

    @property
    def is_whole(self) -> bool:
        """True if it has a leader, all its replicas are in sync and no reassignment is running."""
        in_sync = sorted(self.isr) == sorted(self.replicas)
        return self.leader is not None and in_sync and not self.is_moving


@runtime_checkable
class CanAdminister(Protocol):
    """A target that can send an operator's requests to the controller.

    The results map each partition to the name of an error, ``NONE`` for success. When no controller
    answers, the result has no entries.
    """

    async def partitions(self) -> Sequence[Partition]:
        """Return all partitions of all topics according to ZooKeeper; none if it does not
        answer."""
        ...

    async def reassign(self, wanted: Mapping[str, Sequence[NodeId] | None]) -> Mapping[str, str]:
        """Reassign partitions to these replicas; ``None`` cancels a partition's reassignment."""
        ...

    async def elect_preferred(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Make the first replica of each of these partitions its leader."""
        ...


class Ended(Protocol):
    """A process of the cluster that exited although the harness had not stopped it."""

    @property
    def node(self) -> NodeId: ...
    @property
    def status(self) -> int:
        """Its exit status; negative if a signal ended it."""
        ...

    @property
    def last_line(self) -> str: ...


@runtime_checkable
class HasExits(Protocol):
    @property
    def unexpected_exits(self) -> Sequence[Ended]:
        """All unexpected exits since the start, in order."""
        ...


@runtime_checkable
class HasData(Protocol):
    def drop_data(self) -> None:
        """Remove the nodes' data but keep their logs; to be called after :meth:`Cluster.stop`."""
        ...
