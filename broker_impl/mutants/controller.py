"""Bugs in leader election, and in which controller's requests a broker accepts."""

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import replace

from broker_impl.controller import reassignment
from broker_impl.controller.context import Leadership
from broker_impl.controller.deletion import DeletionState
from broker_impl.controller.election import NO_LEADER, Choice
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.node.controller.events import Asked, Event
from broker_impl.node.controller.znodes import Write
from broker_impl.wire.types import BrokerId, Epoch
from broker_impl.zookeeper.multi import Create, SetData


@mutant(
    "event-uses-enqueue-snapshot",
    of="broker_impl.controller.context:to_choose_from",
    source="C07, KAFKA-5879, KAFKA-5502",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A leader removes a follower from the ISR after the controller has computed the "
    "partition's state for another broker's death, and before it has written that state; then "
    "the leader dies.",
)
def to_choose_from(known: Leadership, found: Leadership) -> Leadership:
    """The controller decides from the partition state that it has cached, not from the current one.

    It puts a follower back into the ISR that the leader has removed, and that lacks what was
    committed without it. If the leader dies before it has removed the follower again, that follower
    may be elected.
    """
    return replace(found, leader=known.leader, isr=known.isr)


@mutant(
    "reassigned-in-former-order",
    of="broker_impl.controller.reassignment:begin",
    source="KIP-455",
    kind="mutation",
    symptom="invariant:placed-as-asked",
    schedule="A partition is reassigned to replicas of which it has some already.",
)
def begin(
    replicas: reassignment.Replicas, move: reassignment.Move | None, wanted: reassignment.Replicas
) -> tuple[reassignment.Replicas, reassignment.Move | None]:
    """A reassignment adds the new replicas after those that the partition has.

    Those that stay keep their order, so the first one is not the preferred leader that the operator
    has asked for. A tool that balances leaders by reassignments changes nothing.
    """
    start = reassignment.origin(replicas, move)
    together = tuple(dict.fromkeys((*start, *wanted)))
    adding = tuple(broker for broker in together if broker not in start)
    removing = tuple(broker for broker in start if broker not in wanted)
    return together, reassignment.Move(adding, removing) if adding or removing else None


@mutant(
    "replicas-in-one-rack",
    of="broker_impl.controller.placement:crowding",
    source="KIP-36",
    kind="mutation",
    symptom="invariant:placed-over-racks",
    schedule="Topics are created whose partitions have fewer replicas than there are brokers.",
)
def crowding(rack: str, used: Sequence[str]) -> int:
    """The controller knows the racks of brokers, and places replicas without regard to them.

    As before KIP-36, a partition may have all of its replicas in one rack. When the rack loses its
    power or its link, the partition is not available, or what was committed is lost.
    """
    return 0


@mutant(
    "election-keeps-epoch",
    of="broker_impl.controller.election:next_epoch",
    source="E1",
    kind="mutation",
    symptom="invariant:leader-epoch-monotone",
    schedule="A leader dies, or is cut off from ZooKeeper, while producers write.",
)
def next_epoch(leader_epoch: Epoch) -> Epoch:
    """A controller elects a leader in the epoch in which another one led before.

    A broker obeys an order of the controller only if its leader epoch is later than the one that it
    knows. So the partition stays offline, or a broker that has just started leads in an epoch in
    which another one has led.
    """
    return leader_epoch


@mutant(
    "offline-isr-emptied",
    of="broker_impl.controller.election:leaderless",
    source="R14; KAFKA-3410 and KAFKA-5083 are related",
    kind="mutation",
    symptom="invariant:isr-within-replicas",
    schedule="The last member of an ISR dies.",
)
def leaderless(isr: tuple[BrokerId, ...]) -> Choice:
    """The last member of an ISR leaves it when it dies, so that the ISR is empty.

    ZooKeeper then no longer records which replica has every committed record. None of them can be
    elected when it returns, and the partition stays offline until an unclean election.
    """
    return Choice(NO_LEADER, ())


@mutant(
    "controller-elect-two-steps",
    of="broker_impl.node.controller.znodes:election_writes",
    source="C09, KAFKA-6082",
    kind="mutation",
    symptom="invariant:one-controller-per-epoch",
    schedule="A broker that is a candidate for controller has read the controller epoch; before "
    "it continues, another broker is elected controller and loses its session.",
)
def election_writes(claim: Create, epoch: SetData) -> list[list[Write]]:
    """A broker becomes the controller first, and increments the controller epoch in a second write.

    Another broker may have raised the epoch since this one read it. Both then send requests with
    the same controller epoch, and brokers cannot recognize which of them is stale.
    """
    return [[claim], [SetData(epoch.path, epoch.data)]]


@mutant(
    "resigns-only-when-idle",
    of="broker_impl.node.controller.events:unanswered",
    source="KAFKA-14946, KAFKA-14035",
    kind="historic",
    symptom="crash",
    tier=2,
    schedule="The controller's session ends while a client waits for it to create a topic.",
)
def unanswered(events: Iterable[Event | Asked]) -> list[Asked]:
    """A controller that loses its place expects that it has no change under way.

    Otherwise an error ends the broker. A controller of KRaft reverted its uncommitted changes when
    another one had been elected, and met a NullPointerException if a topic was among them that it
    had created, and a partition of another topic that it had changed.
    """
    if any(isinstance(event, Asked) for event in events):
        raise RuntimeError("the controller has a change under way")
    return []


@mutant(
    "controller-epoch-unchecked",
    of="broker_impl.replica.fencing:controller",
    source="C01, KAFKA-1188, KAFKA-1483",
    kind="historic",
    symptom="stuck",
    schedule="A controller's request that lists the live brokers is delayed until another "
    "controller is elected and a broker has come back.",
)
def controller(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """A broker obeys a request of any controller, whatever its controller epoch.

    Two brokers can act as the controller at once: one whose session has expired and that does not
    know it yet, and its successor. The broker returns to an earlier view and takes live brokers for
    dead, possibly including the leader that it should follow. Leader epochs still keep it from
    becoming a leader by such a request; before they existed, it did become one.
    """
    return ErrorCode.NONE


@mutant(
    "broker-epoch-unchecked",
    of="broker_impl.replica.fencing:broker",
    source="C04, KAFKA-7235, KIP-380",
    kind="historic",
    symptom="lost-write",
    schedule="A leader loses power together with records that were not synced while a controller "
    "request to it is delayed, and restarts before the controller has noticed its failure.",
)
def broker(request_epoch: Epoch, own_epoch: Epoch) -> ErrorCode:
    """A broker obeys requests that were meant for its previous incarnation.

    Such a request assumes the log that the broker had before it restarted. The broker continues as
    the leader in an epoch whose records it has lost, and gives their offsets to other records; its
    followers truncate what it lacks.
    """
    return ErrorCode.NONE


@mutant(
    "lisr-epoch-unchecked",
    of="broker_impl.replica.fencing:leader_and_isr",
    source="C03",
    kind="mutation",
    symptom="lost-write",
    schedule="A delayed duplicate of a LeaderAndIsr request arrives when another broker already "
    "leads the partition and clients still send requests to the former leader.",
)
def leader_and_isr(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """A replica accepts every LeaderAndIsr request, whatever its leader epoch.

    An old request makes a replaced leader lead again, with the ISR of that time, although the
    current leader and its followers no longer belong to it. If the old leader was alone in that
    ISR, it commits and acknowledges records by itself, until the controller makes it a follower
    again and it truncates them all.
    """
    return ErrorCode.NONE


@mutant(
    "reassign-completes-early",
    of="broker_impl.controller.reassignment:is_complete",
    source="C12; KAFKA-4214, KAFKA-6193 and KIP-455 are related",
    kind="mutation",
    symptom="lost-write",
    schedule="Half of a partition's replicas are reassigned to a broker that cannot reach the "
    "leader yet, and the leader loses power.",
)
def is_complete(
    wanted: Sequence[BrokerId], isr: Container[BrokerId], live: Container[BrokerId]
) -> bool:
    """A reassignment completes as soon as all target replicas are alive, in sync or not.

    The old replicas, which hold everything, are deleted before the new ones hold anything. The one
    replica that is left in the ISR is alone in it although no broker has died, and what it loses is
    lost.
    """
    return all(broker in live for broker in wanted)


@mutant(
    "stopreplica-no-leader-epoch",
    of="broker_impl.replica.fencing:stop",
    source="C05, KAFKA-9539, KIP-570",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A replica is reassigned to another broker and back; a delayed duplicate of the "
    "StopReplica request arrives when the replica is in sync again; then the leader dies.",
)
def stop(request_epoch: Epoch, known_epoch: Epoch, delete: bool) -> ErrorCode:
    """A broker stops and deletes a replica on every StopReplica request, whatever its leader epoch.

    The controller sent the request again because it got no answer, and the broker obeyed that
    second copy. The first copy arrives when the broker has the replica back and is in sync. The
    broker deletes what it has acknowledged and stays in the ISR with an empty log: if it is
    elected, everything is lost.
    """
    return ErrorCode.NONE


@mutant(
    "preferred-not-in-isr",
    of="broker_impl.controller.election:preferred",
    source="C10; KAFKA-9866 is related",
    kind="mutation",
    symptom="lost-write",
    schedule="The preferred leader is alive and cannot reach the current leader until preferred "
    "leaders are restored.",
)
def preferred(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
) -> Choice | None:
    """The preferred replica becomes the leader as soon as it is alive, in sync or not.

    It lacks what was committed while it was away. The other replicas follow it and truncate those
    records, although all of them held the records and no machine or disk was lost.
    """
    wish = replicas[0]
    if leader == wish or wish not in candidates:
        return None
    stay = (replica for replica in isr if replica in candidates and replica != wish)
    return Choice(wish, (wish, *stay))


@mutant(
    "late-order-obeyed",
    of="broker_impl.replica.fencing:connection",
    source="finding 9",
    kind="historic",
    symptom="stuck",
    schedule="A controller's request that lists the live brokers is delayed and duplicated, and "
    "arrives when a broker has come back.",
    tier=2,
)
def connection(number: int, newest: int) -> ErrorCode:
    """A broker obeys a request without an epoch even if it is late and has been sent again since.

    The list of live brokers is such a request. A broker that applies an old list does not connect
    to brokers that have come back since, and does not list them to clients. The next change of
    brokers or ISRs corrects it. If the missing broker is its leader and the broker has already left
    the ISR, that change never comes.
    """
    return ErrorCode.NONE


@mutant(
    "deleted-log-recreated-by-lisr",
    of="broker_impl.replica.fencing:late_roles",
    source="C17, finding 16; KAFKA-15218 and KAFKA-13815 are related",
    kind="mutation",
    symptom="invariant:leader-completeness",
    schedule="A LeaderAndIsr request is delayed and duplicated, and arrives when the partition has "
    "been reassigned.",
    tier=3,
)
def late_roles(late: ErrorCode) -> ErrorCode:
    """A broker checks a late LeaderAndIsr request by its leader epochs alone.

    A broker that has deleted its replica in the meantime knows none of these epochs. It creates the
    replica again and leads it, with an empty log. Clients with equally old metadata use it as the
    leader.
    """
    return ErrorCode.NONE


@mutant(
    "returned-keep-their-places",
    of="broker_impl.controller.election:returned",
    source="finding 7, like KIP-903",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="The controller, which also leads partitions, loses power and registers again "
    "before another broker has been elected controller.",
)
def returned(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
    back: Collection[BrokerId],
) -> Choice | None:
    """A new controller finds all brokers alive and changes nothing, even if a leader was away.

    That leader continues in its epoch with what its disk has kept. Its followers truncate the rest,
    or keep records that an earlier incarnation appended in the same epoch, which cannot be
    distinguished from the current ones.
    """
    return None


@mutant(
    "recreate-no-topic-id",
    of="broker_impl.controller.deletion:is_gone",
    source="C14, KIP-516",
    kind="historic",
    symptom="phantom",
    schedule="A topic is deleted and created again while a broker is down that does not compare "
    "topic ids (stale-log-of-deleted-topic); later that broker is elected leader.",
)
def is_gone(state: DeletionState) -> bool:
    """A topic counts as deleted once every reachable broker has deleted its replicas.

    A broker that is down keeps its replica. Since brokers compare topic ids, this alone has no
    effect for clients. If only the name identifies a topic, the next topic of that name is taken
    for the old one: if that broker becomes the leader, it serves the old records, and all
    followers copy them.
    """
    return state is not DeletionState.STARTED
