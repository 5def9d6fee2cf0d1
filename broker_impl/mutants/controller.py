"""Bugs in who leads what, and in whose orders count."""

from collections.abc import Collection, Container, Sequence
from dataclasses import replace

from broker_impl.controller.context import Leadership
from broker_impl.controller.deletion import State
from broker_impl.controller.election import Choice
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.node.controller.znodes import Write
from broker_impl.wire.types import BrokerId, Epoch
from broker_impl.zookeeper.client import Create, SetData


@mutant(
    "event-uses-enqueue-snapshot",
    of="broker_impl.controller.context:to_choose_from",
    source="C07, KAFKA-5879, KAFKA-5502",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A leader takes a follower out of the ISR after the controller has decided about "
    "another broker's death, and before it has written that down; then the leader dies.",
)
def to_choose_from(known: Leadership, found: Leadership) -> Leadership:
    """The controller acts on what it knew when it heard of something, whatever was written since.

    It puts a follower back into the ISR that its leader has taken out, and that has missed what was
    committed without it. If the leader dies before it has taken it out again, that follower may be
    elected.
    """
    return replace(found, leader=known.leader, isr=known.isr)


@mutant(
    "controller-elect-two-steps",
    of="broker_impl.node.controller.znodes:election_writes",
    source="C09, KAFKA-6082",
    kind="mutation",
    symptom="invariant:one-controller-per-epoch",
    schedule="A broker that wants to be the controller has read the epoch, and another is elected "
    "and loses its session before it goes on.",
)
def election_writes(claim: Create, epoch: SetData) -> list[list[Write]]:
    """A broker becomes the controller first, and raises the epoch to one more than it read then.

    In the meantime another may have raised it. Both give orders in the name of the same epoch, and
    nobody can tell whose are out of date.
    """
    return [[claim], [SetData(epoch.path, epoch.data)]]


@mutant(
    "controller-epoch-unchecked",
    of="broker_impl.replica.fencing:controller",
    source="C01, KAFKA-1188, KAFKA-1483",
    kind="historic",
    symptom="stuck",
    schedule="What a controller tells a broker of who is alive is under way until another is in "
    "office and somebody is back.",
)
def controller(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """A broker obeys whoever says that he is the controller.

    Two of them can give orders at once: one whose session is over, and who has not heard of it, and
    the next one. The broker goes back to what was before and takes others for gone that are there,
    the leader that it should follow among them. Leader epochs still keep it from leading by such an
    order; before there were any it did.
    """
    return ErrorCode.NONE


@mutant(
    "broker-epoch-unchecked",
    of="broker_impl.replica.fencing:broker",
    source="C04, KAFKA-7235, KIP-380",
    kind="historic",
    symptom="lost-write",
    schedule="A leader loses power, and what it had not synced, while an order to it is under way, "
    "and is back before the controller has noticed anything.",
)
def broker(request_epoch: Epoch, own_epoch: Epoch) -> ErrorCode:
    """A broker obeys orders that were meant for a former life of it.

    What it was to do then it was to do with the log that it had then. It leads on in an epoch whose
    records it has lost, and gives their offsets to others; its followers cut off what it lacks.
    """
    return ErrorCode.NONE


@mutant(
    "lisr-epoch-unchecked",
    of="broker_impl.replica.fencing:leader_and_isr",
    source="C03",
    kind="mutation",
    symptom="lost-write",
    schedule="An order to lead arrives once more, late, when another leads already and clients "
    "still ask the broker that led before.",
)
def leader_and_isr(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """A replica takes every order for its role, whichever leader epoch it is of.

    An old one puts a replaced leader back, with the ISR of that time, which the leader of now and
    its followers have left. If it was alone in it, it commits and acknowledges by itself, until it
    is told to follow again and cuts all that off.
    """
    return ErrorCode.NONE


@mutant(
    "reassign-completes-early",
    of="broker_impl.controller.reassignment:is_complete",
    source="C12; KAFKA-4214, KAFKA-6193, KIP-455 are about its neighbours",
    kind="mutation",
    symptom="lost-write",
    schedule="Half of a partition moves to a broker that does not hear the leader yet, and the "
    "leader loses power.",
)
def is_complete(
    wanted: Sequence[BrokerId], isr: Container[BrokerId], live: Container[BrokerId]
) -> bool:
    """A reassignment is over as soon as all of its target are alive, in sync or not.

    Replicas that have everything are deleted before the new ones have anything. Who is left in the
    ISR is alone in it, though nobody has died, and what it loses is lost.
    """
    return all(broker in live for broker in wanted)


@mutant(
    "stopreplica-no-leader-epoch",
    of="broker_impl.replica.fencing:stop",
    source="C05, KAFKA-9539, KIP-570",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A replica is moved away and back; the order to delete it comes once more, late, when "
    "it is in sync again; then the leader dies.",
)
def stop(request_epoch: Epoch, known_epoch: Epoch, delete: bool) -> ErrorCode:
    """A broker stops and deletes a replica whenever it is told so, whatever has changed since.

    The order was sent again when it was not answered, and obeyed. The one that was on its way comes
    to a broker that has the replica back and is in sync. It deletes what it has promised to hold,
    and is in the ISR with nothing: if it is elected everything is lost.
    """
    return ErrorCode.NONE


@mutant(
    "preferred-not-in-isr",
    of="broker_impl.controller.election:preferred",
    source="C10; KAFKA-9866 is about its neighbour",
    kind="mutation",
    symptom="lost-write",
    schedule="The preferred leader is alive and does not reach the leader of now until leaderships "
    "are balanced.",
)
def preferred(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
) -> Choice | None:
    """Leadership goes back to the preferred replica as soon as it is alive, in sync or not.

    It lacks what was committed while it was away. The others take it for their leader and cut off
    what it does not have, though all of them had it: no machine was lost, nor any disk.
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
    schedule="What the controller tells a broker about who is alive is late, is sent again, and "
    "comes when somebody is back.",
    tier=2,
)
def connection(number: int, newest: int) -> ErrorCode:
    """An order without an epoch is obeyed whenever it comes, also when it was sent again long ago.

    Such is the list of the brokers that are alive. A broker that goes by an old one does not reach
    who has come back since, nor tells clients of him; nobody tells it better until brokers or ISRs
    change again. If it follows him and is out of the ISR already, they never do.
    """
    return ErrorCode.NONE


@mutant(
    "deleted-log-recreated-by-lisr",
    of="broker_impl.replica.fencing:late_roles",
    source="C17, finding 16; KAFKA-15218 and KAFKA-13815 are its neighbours",
    kind="mutation",
    symptom="invariant:leader-completeness",
    schedule="An order to lead is late, is sent again, and comes when its partition has moved.",
    tier=3,
)
def late_roles(late: ErrorCode) -> ErrorCode:
    """Who leads is told by epochs alone, also when the order was sent again long ago.

    A broker that has deleted its replica since has none of its epochs. It makes the replica anew
    and leads it, with nothing in it. Clients whose metadata are as old take it for what it was.
    """
    return ErrorCode.NONE


@mutant(
    "returned-keep-their-places",
    of="broker_impl.controller.election:returned",
    source="finding 7, as KIP-903",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="The controller, which leads too, loses power, and is registered again before anybody "
    "has become the next one.",
)
def returned(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
    back: Collection[BrokerId],
) -> Choice | None:
    """A new controller finds everybody alive and changes nothing, also where a leader was away.

    That leader goes on in its epoch with what its disk has kept. Its followers cut off the rest, or
    keep records of a former life of the same epoch, which nothing tells from those of this one.
    """
    return None


@mutant(
    "recreate-no-topic-id",
    of="broker_impl.controller.deletion:is_gone",
    source="C14, KIP-516",
    kind="historic",
    symptom="phantom",
    schedule="A topic is deleted and created again while a broker is down, which leads later.",
)
def is_gone(state: State) -> bool:
    """A topic is deleted once all of its replicas are that can be told.

    Whoever is down keeps his, and there is nothing but the name to tell it from that of the next
    topic of that name. He leads it with the old records in it, which everybody copies.
    """
    return state is not State.STARTED
