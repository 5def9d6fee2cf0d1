"""What the harness asks of others: a client of a workload, the capabilities of a cluster.

A nemesis asks for the capabilities it needs; a cluster offers those it has; a plan that asks for a
fault which nobody offers is refused. All of them are ``runtime_checkable``: ``isinstance`` asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from model.link_faults import LinkFaults
from model.op import Op

NodeId = str
"""``broker-1`` … ``broker-N``, ``zookeeper``; the clients as one party are ``clients``."""

Coordinated = Literal["group", "transaction"]
"""What has a coordinator among the brokers."""

CLIENTS: NodeId = "clients"
ZOOKEEPER: NodeId = "zookeeper"


def broker(number: int) -> NodeId:
    """The node id of the broker with this ``broker.id`` (they start at 1)."""
    return f"broker-{number}"


def number(broker: NodeId) -> int:
    """The ``broker.id`` of a broker."""
    return int(broker.rpartition("-")[2])


def client(name: str) -> NodeId:
    """The party of a client that has listeners, and so links, of its own."""
    return f"{CLIENTS}-{name}"


class Client(Protocol):
    """One logical process of a workload; lives until it closes or an operation ends in doubt."""

    @property
    def alive(self) -> bool:
        """False once it must not act again, although no operation of it ended in doubt."""
        ...

    async def open(self) -> None: ...
    async def invoke(self, op: Op) -> Op:
        """Carry the operation out. The answer is ``op`` with another type, value and error;
        index and time are the interpreter's to set."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Cluster(Protocol):
    """A cluster under test, whatever it is made of."""

    @property
    def nodes(self) -> tuple[NodeId, ...]: ...
    @property
    def brokers(self) -> tuple[NodeId, ...]: ...
    def bootstrap(self, client: str | None = None) -> str:
        """``host:port,…`` for clients; a name selects that client's own listeners."""
        ...

    async def start(self) -> None:
        """Up and ready: a controller is elected and a replicated topic can be written."""
        ...

    async def stop(self) -> None:
        """Everything ended and removed, whatever state it is in."""
        ...

    async def recover(self, timeout_s: float) -> bool:
        """After all faults are healed: every node up, every partition led with a full ISR?"""
        ...


@runtime_checkable
class CanKill(Protocol):
    async def kill(self, node: NodeId) -> None: ...
    async def start_node(self, node: NodeId) -> None: ...
    async def is_running(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanRestart(Protocol):
    async def stop_node(self, node: NodeId) -> int:
        """A clean stop (SIGTERM); the exit status, negative when it had to be killed."""
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
    """Links are directed: cutting ``a → b`` stops the bytes from a to b, whoever connected."""

    async def cut(self, source: NodeId, target: NodeId) -> None: ...
    async def heal(self, source: NodeId, target: NodeId) -> None:
        """Take one cut back; the link stays cut while another fault cuts it."""
        ...

    async def heal_all(self) -> None: ...
    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        """What the active faults do to the links between the two, as the target has recorded."""
        ...

    async def answers(self, node: NodeId) -> bool:
        """Measured: does the node answer a probe that bypasses all faults of links?"""
        ...

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measured: was a probe through the links between the two left unanswered, while the
        probed node itself answered past them? ``None`` when there is no telling: that node is
        down, or another fault makes the links too slow to wait for."""
        ...


@runtime_checkable
class CanRefuse(Protocol):
    """Links can also be closed: a connection is reset at once, a new one refused."""

    async def refuse(self, one: NodeId, other: NodeId) -> None: ...
    async def accept(self, one: NodeId, other: NodeId) -> None: ...
    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        """Measured: nobody accepts a connection on the links between the two."""
        ...


@runtime_checkable
class CanSlow(Protocol):
    """Links can be slow: bytes from source to target arrive later, all of them, in order. A link
    that several faults slow has the largest of their latencies."""

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None: ...
    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Take one fault's latency back; those of other faults remain."""
        ...

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        """Measured: the quickest answer to a probe over the links between the two, in seconds;
        ``None`` for no answer."""
        ...


@runtime_checkable
class CanDisconnect(Protocol):
    """A node's network cable can be pulled: it has no network then, and goes on running."""

    async def disconnect(self, node: NodeId) -> None: ...
    async def reconnect(self, node: NodeId) -> None:
        """Its networks as they were; changes nothing for a node that has them."""
        ...

    async def is_disconnected(self, node: NodeId) -> bool:
        """Measured: it is on no network of the cluster, and a probe past the mesh is left
        unanswered."""
        ...


@runtime_checkable
class CanFillDisk(Protocol):
    """A node's data lies on a file system of its own, small enough to be filled."""

    async def fill_disk(self, node: NodeId) -> None:
        """Nothing more can be written to its data. A broker may end over it, as Kafka does when
        its last log directory fails: such an end is expected until a moment after
        :meth:`free_disk`, as a write that failed just before may still be on its way to it."""
        ...

    async def free_disk(self, node: NodeId) -> None:
        """Take away what filled it, also while the node is down. Starts nothing; changes nothing
        for a node whose disk was not filled."""
        ...

    async def disk_free_bytes(self, node: NodeId) -> int:
        """Measured in the node's own file system, also while the node is down."""
        ...


@dataclass(frozen=True, slots=True)
class Strain:
    """How tight a node's limits are, and what that does to it."""

    cpus: float
    """Its limit now, as the engine has it; 0 is none."""
    memory_bytes: int
    """Its limit now, as the engine has it; 0 is none."""
    throttled_periods: int
    """In how many periods of the scheduler it wanted more than its share, since it was started."""
    memory_used_bytes: int
    """0 while it is down."""
    memory_met: int
    """Grows whenever the kernel finds that it wants more than its limit and takes pages back from
    it; counted since it was started, 0 while it is down."""
    oom_killed: bool
    """Did the kernel end it for want of memory, in its present or last life?"""


@runtime_checkable
class CanSqueeze(Protocol):
    """A running node can be given less CPU and less memory."""

    async def squeeze_cpu(self, node: NodeId, cpus: float) -> None: ...
    async def squeeze_memory(self, node: NodeId, bytes_: int) -> None:
        """An end by the kernel's OOM killer is expected until :meth:`release`."""
        ...

    async def release(self, node: NodeId) -> None:
        """Both limits as they were; changes nothing for a node that has them."""
        ...

    async def strain(self, node: NodeId) -> Strain:
        """Measured, also while the node is down."""
        ...


@runtime_checkable
class CanDropPackets(Protocol):
    """A share of a node's packets can be dropped below TCP, which then sends them again."""

    async def drop_packets(self, node: NodeId, share: float) -> None:
        """``share`` (0 to 1) of what comes in, and of what goes out."""
        ...

    async def pass_packets(self, node: NodeId) -> None:
        """The rule is gone; changes nothing for a node without one, or one that is down."""
        ...

    async def packets_dropped(self, node: NodeId) -> int | None:
        """Measured: the counter of the rule itself; ``None`` when there is no rule (a node that
        is down has none)."""
        ...


@runtime_checkable
class CanLosePower(Protocol):
    """A node's machine can be without power: nobody is told, and what was not synced is lost."""

    async def power_off(self, node: NodeId, after: int = 0, renaming: str = "") -> None:
        """At once; or, when ``after`` is given and the node runs, right in front of the disk
        operation that comes after so many others, or else of the next rename of a file whose name
        ends in ``renaming``; and soon if it does not come to it."""
        ...

    async def power_on(self, node: NodeId) -> None:
        """Starts nothing; changes nothing for a node that has power."""
        ...

    async def lost_bytes(self, node: NodeId) -> int | None:
        """Measured: how much was written and not synced when the power went; ``None`` while the
        machine has power, or answers."""
        ...


@runtime_checkable
class CanSlowDisk(Protocol):
    """A node's disk can be slow: every operation takes longer, and the node waits for it."""

    async def slow_disk(self, node: NodeId, seconds: float) -> None: ...
    async def quicken_disk(self, node: NodeId) -> None:
        """As quick as usual; changes nothing for a disk that is."""
        ...

    async def disk_takes_s(self, node: NodeId) -> float:
        """Measured: how long a small operation takes, in seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Flip:
    """A bit that was turned over on a node's disk."""

    path: str
    at: int
    """Which byte."""
    bit: int
    batch_at: int
    """Where the batch begins that it is part of."""


@runtime_checkable
class CanFlipBits(Protocol):
    """A bit of what a node has stored can be turned over."""

    async def flip_bit(self, node: NodeId, key: str) -> Flip | None:
        """One of those that the CRC of a batch covers, in the log of ``topic-partition``; ``None``
        when nothing of it is stored there."""
        ...

    async def is_damaged(self, node: NodeId, flip: Flip) -> bool:
        """Measured: is there a batch at that place, whose bytes do not match its CRC?"""
        ...

    async def flip_back(self, node: NodeId, flip: Flip) -> None:
        """Turn it over again; changes nothing where no batch is damaged."""
        ...


@runtime_checkable
class CanSetClock(Protocol):
    """A node's wall clock can be set, and its clocks can run at another rate."""

    async def jump_clock(self, node: NodeId, seconds: float) -> None:
        """Forward, or back."""
        ...

    async def drift_clock(self, node: NodeId, rate: float) -> None:
        """So many local seconds a second from now on, for every clock and timer of the node."""
        ...

    async def correct_clock(self, node: NodeId) -> None:
        """The right time and the right rate; changes nothing for a clock that has both."""
        ...

    async def clock_ahead_s(self, node: NodeId) -> float:
        """Measured: how far its wall clock is ahead of the harness's; negative when behind."""
        ...


@runtime_checkable
class CanExpire(Protocol):
    """A broker's ZooKeeper session can be ended while the broker is well."""

    async def expire_session(self, node: NodeId) -> bool:
        """Is it over? False for a node that has none, or whose ZooKeeper does not answer."""
        ...


@runtime_checkable
class CanMeddle(Protocol):
    """Single messages can be kept for a while, or get lost, on their way."""

    async def meddle(
        self, links: Sequence[tuple[NodeId, NodeId]], apis: Sequence[str], what: str
    ) -> int:
        """Wait for the first message of these APIs (``Produce``, …) on links from who asks to who
        answers; return a number by which to ask for what became of it.

        ``what``: ``hold-request`` and ``hold-response`` keep it, and what follows it on its
        connection; ``drop-response`` loses an answer, whose connection is reset;
        ``corrupt-request`` turns one bit over. ``ValueError`` for an API that nobody knows.
        """
        ...

    async def caught(self, number: int) -> str | None:
        """Measured: which message it was; ``None`` when there was none yet."""
        ...

    async def is_held(self, number: int) -> bool:
        """Measured: is it kept at the moment?"""
        ...

    async def let_go(self, number: int) -> None:
        """Deliver what is kept, if its connection still stands; wait for nothing any more."""
        ...

    async def let_all_go(self) -> None: ...


@runtime_checkable
class CanHalt(Protocol):
    """A node can be held at a named point of its code; what else it does goes on."""

    async def halt(self, node: NodeId, point: str) -> None:
        """From now on; ``ValueError`` for a point that is none."""
        ...

    async def halted(self, node: NodeId, point: str) -> int:
        """Measured: how many paths of its code wait there now."""
        ...

    async def go_on(self, node: NodeId, point: str) -> None:
        """All that wait there, and nobody waits there any more."""
        ...

    async def all_go_on(self) -> None: ...


@runtime_checkable
class HasHealth(Protocol):
    """How a cluster is, as ZooKeeper has it now."""

    async def is_whole(self) -> bool:
        """Is every broker registered, and every partition led with a full ISR?"""
        ...

    async def registration(self, node: NodeId) -> int | None:
        """The number of a broker's registration, another one for every session; ``None`` for one
        that is not registered, and for ZooKeeper."""
        ...

    async def in_sync_min(self, node: NodeId) -> int:
        """The size of the smallest ISR that the broker is in; 0 when it is in none, and 1 when
        ZooKeeper cannot be asked: it may be."""
        ...


@runtime_checkable
class HasRoles(Protocol):
    async def controller(self) -> NodeId | None: ...
    async def leader(self, key: str) -> NodeId | None:
        """The leader of ``topic-partition`` as ZooKeeper has it now."""
        ...

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        """The in-sync replicas of ``topic-partition`` as ZooKeeper has them now."""
        ...

    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None:
        """Who coordinates a group, or a transactional id: the leader, as ZooKeeper has it now, of
        the partition of an internal topic that the name belongs to."""
        ...


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as the controller has left it."""

    key: str
    """``topic-partition``."""
    replicas: tuple[NodeId, ...]
    """Whom it is assigned to, the preferred leader first; who is being added or removed is among
    them."""
    leader: NodeId | None
    leader_epoch: int
    isr: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()

    @property
    def topic(self) -> str:
        """Whose partition it is."""
        return self.key.rpartition("-")[0]

    @property
    def target(self) -> tuple[NodeId, ...]:
        """Whom it is assigned to once it is at rest."""
        return tuple(node for node in self.replicas if node not in self.removing)

    @property
    def is_moving(self) -> bool:
        """Is it on its way to other replicas?"""
        return bool(self.adding or self.removing)

    @property
    def is_whole(self) -> bool:
        """At rest, led, and every replica in sync."""
        in_sync = sorted(self.isr) == sorted(self.replicas)
        return self.leader is not None and in_sync and not self.is_moving


@runtime_checkable
class CanAdminister(Protocol):
    """What operators ask of a controller. Answers are names of errors by key, ``NONE`` for none;
    nothing is told of a partition when no controller answers."""

    async def partitions(self) -> Sequence[Partition]:
        """Every partition of every topic, as ZooKeeper has it now; none when it does not answer."""
        ...

    async def reassign(self, wanted: Mapping[str, Sequence[NodeId] | None]) -> Mapping[str, str]:
        """Move partitions, by key, to these replicas; ``None``: cancel a move."""
        ...

    async def elect_preferred(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Lead these partitions by the first of their replicas."""
        ...


class Ended(Protocol):
    """A process of the cluster that ended although nobody had asked it to."""

    @property
    def node(self) -> NodeId: ...
    @property
    def status(self) -> int:
        """Its exit status; negative: the signal that ended it."""
        ...

    @property
    def last_line(self) -> str: ...


@runtime_checkable
class HasExits(Protocol):
    @property
    def unexpected_exits(self) -> Sequence[Ended]:
        """All since the start, in their order."""
        ...


@runtime_checkable
class HasData(Protocol):
    def drop_data(self) -> None:
        """Remove what the nodes have stored, keep their logs; after :meth:`Cluster.stop`."""
        ...
