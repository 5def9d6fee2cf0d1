"""Bugs in how a replica handles a change of its role, of its disk, or of the live brokers."""

from collections.abc import Iterable
from uuid import UUID

from broker_impl.errors import ApiError, ErrorCode, StorageError
from broker_impl.mutants import mutant
from broker_impl.wire.types import BrokerId, Epoch, Offset


@mutant(
    "joining-not-waited-for",
    of="broker_impl.replica.isr:maximal",
    source="KIP-497",
    kind="mutation",
    symptom="lost-write",
    tier=2,
    schedule="A leader adds a follower to the ISR and does not learn that the ISR was written; "
    "the follower falls behind again, and the leader dies.",
)
def maximal(committed: frozenset[BrokerId], proposed: frozenset[BrokerId]) -> frozenset[BrokerId]:
    """A leader counts only the confirmed ISR, not the followers that it is adding.

    ZooKeeper may have stored the larger ISR already, with the answer still in flight. What the
    leader commits now without the new member is not on every broker that may be elected.
    """
    return committed


@mutant(
    "joins-isr-by-stale-hw",
    of="broker_impl.replica.isr:may_join",
    source="KAFKA-7128",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A leader is elected before it has received the latest high watermark; a follower "
    "that was not in sync reaches the watermark that this leader knows, and the leader dies.",
)
def may_join(
    follower_end: Offset, high_watermark: Offset, epoch_start: Offset, eligible: bool
) -> bool:
    """A follower joins the ISR as soon as it has reached the leader's high watermark.

    A new leader's watermark may be old: more was committed than the leader knows of, and the
    follower lacks it. The follower counts as in sync all the same, and is elected when the leader
    dies.
    """
    return eligible and follower_end >= high_watermark


@mutant(
    "shrink-when-equal-leo",
    of="broker_impl.replica.isr:out_of_sync",
    source="B18, KAFKA-7152, KAFKA-4485, KAFKA-1546",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A follower that is caught up is isolated while no records are written, and its "
    "leader loses power.",
)
def out_of_sync(
    follower_end: Offset, leader_end: Offset, now: float, caught_up_at: float, lag_max: float
) -> bool:
    """A follower leaves the ISR if it has not fetched for a while, even if it holds all records.

    The leader remains alone in the ISR although other replicas have the same records. If it loses
    some of them it still leads, because no other replica may be elected.
    """
    return now - caught_up_at > lag_max


@mutant(
    "laggard-stays-in-isr",
    of="broker_impl.replica.isr:out_of_sync",
    source="KAFKA-1546, KIP-16",
    kind="mutation",
    symptom="invariant:laggard-leaves-isr",
    schedule="A follower is isolated from its leader, but not from ZooKeeper, for longer than "
    "replica.lag.time.max.ms, while clients write.",
)
def out_of_sync_never(
    follower_end: Offset, leader_end: Offset, now: float, caught_up_at: float, lag_max: float
) -> bool:
    """A leader keeps each follower in the ISR, however long it lags.

    Producers with acks=all, and consumers, wait for a follower that the leader cannot reach until
    the controller notices that it is gone. If it still has its session, nothing is committed
    before the fault is over, although enough replicas are in sync.
    """
    return False


@mutant(
    "pending-isr-cleared-by-lisr",
    of="broker_impl.replica.isr:confirms",
    source="B20, KAFKA-12686",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="The response to a leader's write of the ISR is late; meanwhile the controller "
    "writes another ISR, and the leader proposes one more, which does not reach ZooKeeper "
    "before the leader dies.",
)
def confirms(written: int, known: int) -> bool:
    """A leader takes any answer about an ISR for the answer to its latest proposal.

    A request of the controller ends the wait for the first answer, so that two are in flight. The
    late answer to the first proposal confirms the second one, which no other broker knows: the
    leader commits without a follower that may still be elected.
    """
    return True


@mutant(
    "hw-checkpoint-reset",
    of="broker_impl.replica.watermark:without_replica",
    source="B12, KAFKA-769, KAFKA-851, KAFKA-858, KAFKA-1647",
    kind="historic",
    symptom="lost-write",
    schedule="Followers truncate to their own high watermarks: brokers restart, write their "
    "checkpoints before they learn of a leader, and that leader dies before a follower has "
    "fetched again.",
)
def without_replica(checkpointed: Offset) -> Offset:
    """A broker that has started checkpoints watermark 0 for each log until it is made a follower.

    It then reads its own checkpoint: nothing was ever committed. A replica that truncates there
    (before KIP-101, every follower) drops its whole log.
    """
    return 0


@mutant(
    "dead-broker-joins-isr",
    of="broker_impl.replica.isr:eligible",
    source="B10, KAFKA-14140, KIP-841",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A follower whose registration in ZooKeeper had expired catches up and joins the "
    "ISR; then it loses power, and its leader dies before the follower has fetched the lost "
    "records again.",
)
def eligible(live_epoch: Epoch | None, fetch_epoch: Epoch) -> bool:
    """A leader adds a follower to the ISR that ZooKeeper and the controller consider dead.

    When the follower dies, its death changes nothing, so the controller does not react. It restarts
    without the records that it had not synced and keeps its place in the ISR, so it may be elected.
    """
    return True


@mutant(
    "append-after-io-error",
    of="broker_impl.log.append_failure:of_append",
    source="B16, KAFKA-10778",
    kind="historic",
    symptom="invariant:log-in-order",
    schedule="The disk of a leader is full for a moment, so that one append fails, and has free "
    "space again before any other operation fails.",
)
def of_append(error: StorageError) -> StorageError | ApiError:
    """A leader rejects a batch that could not be written, and continues with the next one.

    The part of the failed batch that reached the disk stays in the file. From there on offsets and
    file positions disagree: neither consumers nor followers can read what the leader appends next,
    so it cannot be acknowledged.
    """
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


@mutant(
    "purgatory-not-cleared-on-demotion",
    of="broker_impl.replica.acks:is_abandoned",
    source="C22, KAFKA-2960, KAFKA-1148",
    kind="historic",
    symptom="lost-write",
    schedule="A leader that reaches no follower is replaced while requests wait for "
    "acknowledgement, truncates the records of these requests, and is elected again before the "
    "requests time out.",
)
def is_abandoned(leads: bool, appended_in: Epoch, leading_since: Epoch) -> bool:
    """A produce request keeps waiting for its acknowledgement when the leader is replaced.

    It waits for an offset. If the same replica becomes the leader again, that offset is eventually
    committed with another record, because the original one was truncated in between. The request is
    answered with success.
    """
    return False


@mutant(
    "deletion-not-awaited",
    of="broker_impl.replica.watermark:low_watermark",
    source="KIP-107",
    kind="mutation",
    symptom="invariant:deleted-on-all-replicas",
    schedule="Records are deleted that followers have.",
)
def low_watermark(leader_start: Offset, starts: Iterable[Offset]) -> Offset:
    """DeleteRecords is answered as soon as the leader has deleted the records.

    Followers learn of the new log start with their next fetch. If one of them is elected before, it
    returns records that an application believes to be deleted, for example those of a customer who
    has asked for it; consumers that begin at the earliest offset read them again.
    """
    return leader_start


@mutant(
    "deleterecords-beyond-hw",
    of="broker_impl.replica.watermark:deletable_end",
    source="G10, L1, KIP-107",
    kind="mutation",
    symptom="inconsistent-offsets",
    tier=2,
    schedule="A leader that reaches no follower is asked to delete records that are not "
    "committed yet, and dies.",
)
def deletable_end(high_watermark: Offset, log_end: Offset) -> Offset:
    """DeleteRecords may delete all records that a leader has, committed or not.

    The high watermark is never below the log start and rises with it, past records that followers
    do not have yet. A produce request that waits for such a record is acknowledged; the next leader
    never had the record, and gives its offset to another one.
    """
    return log_end


@mutant(
    "stale-log-of-deleted-topic",
    of="broker_impl.replica.topic_identity:is_of_deleted_topic",
    source="finding 28, KIP-516; KAFKA-14616 is related",
    kind="historic",
    symptom="phantom",
    tier=2,
    schedule="A replica is reassigned to another broker while its own broker is down; the topic is "
    "deleted and created again, and the broker that was down leads it.",
)
def is_of_deleted_topic(known: UUID, ordered: UUID, is_new: bool) -> bool:
    """A broker uses any log that has the name of its partition.

    A broker that was down when its replica was removed keeps the log, and the deletion of the topic
    does not concern this broker any more. If it then has a replica of a new topic of the same name,
    that replica begins with the records of the deleted topic. If it leads, consumers read them, and
    the followers copy them.
    """
    return False
