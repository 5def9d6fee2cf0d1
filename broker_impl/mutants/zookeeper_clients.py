"""Bugs in what ZooKeeper's clients see: sessions, watches, nodes, and multi requests."""

from collections.abc import Callable, Sequence

from broker_impl.mutants import mutant
from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.quorum.ensemble import ServerId
from broker_impl.zookeeper.records import Op
from broker_impl.zookeeper.tree import Database, Node, int32
from broker_impl.zookeeper.txn_records import ErrorTxn, MultiTxn
from broker_impl.zookeeper.watches import Kind


@mutant(
    "zk-session-moved-ignored",
    of="broker_impl.zookeeper.quorum.owners:is_refused",
    source="ZOOKEEPER-710, ZOOKEEPER-2926",
    kind="historic",
    symptom="reordered",
    schedule="A client moves to another server while the former one still forwards its writes.",
    tier=2,
    is_planned=False,
)
def is_refused(owner: ServerId | None, server: ServerId) -> bool:
    """A write over a connection that the client has given up is accepted.

    It arrives later than what the client has written over its new connection, so the writes of one
    client take effect out of their order.
    """
    return False


@mutant(
    "zk-session-expires-early",
    of="broker_impl.zookeeper.sessions:bucket_of",
    source="M13",
    kind="mutation",
    symptom="zk-expired-early",
    schedule="A client is silent for less than its timeout.",
)
def bucket_of(now: float, timeout_s: float, tick_s: float) -> int:
    """A session expires after a fifth of the timeout that its client was granted.

    A client that pings in time finds its session expired, and its ephemeral nodes gone.
    """
    return int((now + timeout_s / 5) / tick_s) + 1


@mutant(
    "zk-session-ends-with-connection",
    of="broker_impl.zookeeper.sessions:ends_with_connection",
    source="M14",
    kind="mutation",
    symptom="zk-expired-early",
    schedule="A client loses its connection, and connects again in time.",
)
def ends_with_connection() -> bool:
    """A session ends when its connection is lost, with its ephemeral nodes.

    A client that connects again at once finds its locks and registrations gone.
    """
    return True


@mutant(
    "zk-password-ignored",
    of="broker_impl.zookeeper.sessions:is_password",
    source="M19",
    kind="mutation",
    symptom="zk-session-stolen",
    schedule="A client asks for the session of another one, with a wrong password.",
)
def is_password(expected: bytes, given: bytes | None) -> bool:
    """The password of a session is not compared.

    Any client that knows or guesses an id takes over the session, and disconnects its owner.
    """
    return True


@mutant(
    "zk-reply-before-event",
    of="broker_impl.zookeeper.pipeline:deliver",
    source="M11",
    kind="mutation",
    symptom="zk-watch-missed",
    schedule="A client changes a node that it watches.",
)
def deliver(trigger: Callable[[], None], answer: Callable[[], None]) -> None:
    """The reply to a write is sent before the events of its change.

    A client that has an answer, and no event, concludes that its cache is current.
    """
    answer()
    trigger()


@mutant(
    "zk-watch-fires-twice",
    of="broker_impl.zookeeper.watches:is_one_shot",
    source="M12",
    kind="mutation",
    symptom="zk-watch-repeated",
    schedule="A node changes twice after a client has set a watch.",
)
def is_one_shot(kind: Kind) -> bool:
    """A watch is not removed when it triggers.

    Clients get events for which they have set no watch.
    """
    return False


@mutant(
    "zk-partial-multi",
    of="broker_impl.zookeeper.proposer:rejected",
    source="M17, ZOOKEEPER-3127",
    kind="mutation",
    symptom="zk-torn-multi",
    schedule="The last operation of a multi is rejected.",
)
def rejected(parts: Sequence[tuple[int, Record]], code: Code, operations: int) -> MultiTxn:
    """The operations of a multi before the rejected one take effect.

    A multi is all or nothing: others see half of it.
    """
    rest = [code] + [Code.RUNTIME_INCONSISTENCY] * (operations - len(parts) - 1)
    return MultiTxn((*parts, *((Op.ERROR, ErrorTxn(each)) for each in rest)))


@mutant(
    "zk-cversion-without-deletes",
    of="broker_impl.zookeeper.tree:changes_of_children",
    source="M16",
    kind="mutation",
    symptom="zk-list-divergence",
    schedule="A client creates and deletes a child.",
)
def changes_of_children(creates: int, children: int) -> int:
    """The ``cversion`` of a node does not count the deletions of children.

    A client that compares it does not notice that a child is gone.
    """
    return int32(creates)


@mutant(
    "zk-stale-pzxid",
    of="broker_impl.zookeeper.tree:advance",
    source="ZOOKEEPER-3125, ZOOKEEPER-3145, ZOOKEEPER-3249",
    kind="historic",
    symptom="invariant:zab-equal-states",
    schedule="Children are created and deleted, and a server restarts.",
)
def advance(parent: Node, creates: int, zxid: int) -> None:
    """A replay of the log does not bring the ``pzxid`` of a parent up to date.

    A client that sets its watches again on that server is not notified that the children have
    changed.
    """
    if int32(creates - parent.creates) > 0:
        parent.creates = creates


@mutant(
    "zk-ephemerals-not-restored",
    of="broker_impl.zookeeper.state_stream:restore_owner",
    source="ZOOKEEPER-1367",
    kind="historic",
    symptom="zk-ephemeral-outlived",
    schedule="A session has an ephemeral node when a server takes a snapshot or sends its state; "
    "the server that has it from there becomes the leader, and the session ends.",
)
def restore_owner(database: Database, owner: int, path: str) -> None:
    """The table of ephemeral nodes is not restored from a snapshot.

    When the session ends, its nodes are not deleted, and stay for ever.
    """
