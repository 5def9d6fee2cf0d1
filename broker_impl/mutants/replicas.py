"""Bugs in what a replica makes of a change: of its role, of its disk, of who is alive."""

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
    schedule="A leader adds a follower to the ISR and is not told that it is written; the follower "
    "falls behind again, and the leader dies.",
)
def maximal(committed: frozenset[BrokerId], proposed: frozenset[BrokerId]) -> frozenset[BrokerId]:
    """A leader reckons with the ISR that has been confirmed to it, and not with who is to join.

    ZooKeeper may have the new one already, and its answer be late. What the leader commits now
    without the newcomer is not on every broker that may be elected.
    """
    return committed


@mutant(
    "joins-isr-by-stale-hw",
    of="broker_impl.replica.isr:may_join",
    source="KAFKA-7128",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A leader has not heard of the newest watermark when it is elected; a follower that "
    "was not in sync has reached the one that it knows, and the leader dies.",
)
def may_join(
    follower_end: Offset, high_watermark: Offset, epoch_start: Offset, eligible: bool
) -> bool:
    """A follower joins the ISR as soon as it has reached the leader's watermark.

    A new leader's watermark may be an old one: more was committed than it knows of, and the
    follower lacks it. It is in sync all the same, and leads when the leader dies.
    """
    return eligible and follower_end >= high_watermark


@mutant(
    "shrink-when-equal-leo",
    of="broker_impl.replica.isr:out_of_sync",
    source="B18, KAFKA-7152, KAFKA-4485, KAFKA-1546",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A follower that has everything is cut off while nothing is written, and its leader "
    "loses power.",
)
def out_of_sync(
    follower_end: Offset, leader_end: Offset, now: float, caught_up_at: float, lag_max: float
) -> bool:
    """A follower leaves the ISR when it has not fetched for a while, with nothing there to fetch.

    The leader is left alone in it, of all that have the same records. When it loses some of them it
    leads all the same, since nobody else may.
    """
    return now - caught_up_at > lag_max


@mutant(
    "pending-isr-cleared-by-lisr",
    of="broker_impl.replica.isr:confirms",
    source="B20, KAFKA-12686",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="The answer to a leader's write of the ISR is late; meanwhile the controller writes "
    "another, and the leader proposes one more, which does not reach ZooKeeper before the leader "
    "dies.",
)
def confirms(written: int, known: int) -> bool:
    """A leader takes any answer about an ISR for the answer to its latest proposal.

    An order of the controller ends the wait for the first one, so that two are on their way. The
    late answer to the first confirms the second, of which nobody else knows: the leader commits
    without a follower that may still be elected.
    """
    return True


@mutant(
    "hw-checkpoint-reset",
    of="broker_impl.replica.watermark:untold",
    source="B12, KAFKA-769, KAFKA-851, KAFKA-858, KAFKA-1647",
    kind="historic",
    symptom="lost-write",
    schedule="Under followers that cut at their own watermark: brokers are back, checkpoint, and "
    "hear of a leader only then, who dies before a follower has fetched anew.",
)
def untold(checkpointed: Offset) -> Offset:
    """A broker that has started writes down watermark 0 for every log, until it is told to follow.

    It takes itself at its word: nothing was ever committed. Who cuts a log there (before KIP-101,
    everybody) cuts off all of it.
    """
    return 0


@mutant(
    "dead-broker-joins-isr",
    of="broker_impl.replica.isr:eligible",
    source="B10, KAFKA-14140, KIP-841",
    kind="historic",
    symptom="lost-write",
    tier=2,
    schedule="A follower that ZooKeeper has given up catches up and joins; then it loses power, "
    "and its leader dies before it has fetched again what it lost.",
)
def eligible(live_epoch: Epoch | None, fetch_epoch: Epoch) -> bool:
    """A leader takes a follower into the ISR that no controller takes for alive.

    When it dies nobody notices: it was dead already. It comes back without what it had not synced
    and keeps its place in the ISR, by which it may be elected.
    """
    return True


@mutant(
    "append-after-io-error",
    of="broker_impl.log.failure:of_append",
    source="B16, KAFKA-10778",
    kind="historic",
    symptom="stuck",
    schedule="The disk of a leader is full for a moment, and free again before anything but an "
    "append has failed.",
)
def of_append(error: StorageError) -> StorageError | ApiError:
    """A leader refuses the record that could not be written, and goes on with the next one.

    What of the first one did reach the disk lies before it. From there on offsets and bytes are
    apart: neither consumers nor followers can read what the leader goes on to append, and it cannot
    be acknowledged.
    """
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


@mutant(
    "purgatory-not-cleared-on-demotion",
    of="broker_impl.replica.acks:is_abandoned",
    source="C22, KAFKA-2960, KAFKA-1148",
    kind="historic",
    symptom="lost-write",
    schedule="A leader that reaches no follower is replaced while requests wait for their "
    "acknowledgement, cuts what they appended, and leads again before they time out.",
)
def is_abandoned(leads: bool, appended_in: Epoch, leading_since: Epoch) -> bool:
    """Whoever waits for an acknowledgement goes on waiting when the leader is replaced.

    It waits for an offset. If the same replica leads again, that offset is committed some day, with
    somebody else's record: what was appended there has been cut off in between. The request is
    answered with success.
    """
    return False


@mutant(
    "deleterecords-beyond-hw",
    of="broker_impl.replica.watermark:deletable_end",
    source="G10, L1, KIP-107",
    kind="mutation",
    symptom="inconsistent-offsets",
    tier=2,
    schedule="A leader that reaches no follower is asked to delete what it has only appended, and "
    "dies.",
)
def deletable_end(high_watermark: Offset, log_end: Offset) -> Offset:
    """All that a leader has may be deleted, committed or not.

    The watermark is never below the log's start and goes up with it, past what followers have yet
    to fetch. Whoever waits there is told that his record is committed; the next leader has never
    seen it, and gives its offset to another one.
    """
    return log_end
