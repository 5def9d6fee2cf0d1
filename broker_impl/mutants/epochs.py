"""Bugs in leader epochs and truncation."""

from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.replica import follower
from broker_impl.wire.types import BrokerId, Epoch, Offset


@mutant(
    "truncate-to-hw-loss",
    of="broker_impl.replica.follower:on_new_epoch",
    source="A01, KAFKA-1211, KIP-101",
    kind="historic",
    symptom="lost-write",
    schedule="A follower restarts (or gets a new leader) before it has received the latest high "
    "watermark, and the leader dies before the follower has fetched again.",
)
def on_new_epoch(log_end: Offset, high_watermark: Offset, latest_epoch: Epoch) -> Offset | None:
    """A follower truncates to its own high watermark in a new epoch, without asking the leader.

    Its watermark lags the leader's by a round trip, and after a restart by the age of a checkpoint:
    it drops records that it holds, that the leader counted, and that were acknowledged. If the
    leader dies before they are fetched again, this follower is elected out of the ISR without them.
    Until KIP-101 that was the protocol.
    """
    return min(high_watermark, log_end)


@mutant(
    "truncate-to-hw-diverge",
    of="broker_impl.replica.follower:compares_by",
    source="A02, KAFKA-1211, KIP-101",
    kind="historic",
    symptom="lost-write",
    schedule="A replica is elected that lacks records which a former leader counts as committed; "
    "it appends others at their offsets, and the former leader follows it.",
)
def compares_by(latest_epoch: Epoch) -> Epoch:
    """Logs are compared by offset alone: a follower does not send the epoch of its last record.

    It truncates its log to its own high watermark, takes what is left for a prefix of the leader's
    log because it is no longer, and fetches from there. If the leader was elected without some of
    those records, as happens where logs are truncated by watermarks alone, and has appended since,
    two in-sync replicas have different records at one offset. What was acknowledged and read there
    is gone once the other replica leads, and its offset holds another record. Until KIP-101 batches
    did not even carry their epoch.
    """
    return follower.UNDEFINED


@mutant(
    "fast-failover-no-epoch-in-reply",
    of="broker_impl.log.epochs:epoch_to_return",
    source="A03, KAFKA-6361, KIP-279",
    kind="historic",
    symptom="lost-write",
    schedule="Two elections happen one after the other, so that the follower's last epoch is "
    "unknown to the new leader, which has records of an earlier epoch at those offsets.",
)
def epoch_to_return(asked: Epoch, known: Epoch) -> Epoch:
    """A leader answers where an epoch ends, but not for which epoch.

    The last records of a follower may be of an epoch that the leader does not know. The follower
    takes the leader's answer, which is for an older epoch, for the end of its own. It keeps records
    where the leader has others, and both count as in sync. Until Kafka 2.0 the response had no
    field for the epoch.
    """
    return asked


@mutant(
    "skip-follower-step-same-leader",
    of="broker_impl.replica.follower:starts_over",
    source="A04, KAFKA-7164",
    kind="historic",
    symptom="lost-write",
    schedule="A follower misses an epoch: its leader is replaced, truncates its log under the "
    "next leader and is elected again, while the controller's requests do not reach the "
    "follower.",
    tier=2,
)
def starts_over(former_leader: BrokerId | None, leader: BrokerId) -> bool:
    """A follower whose leader stays the same does not compare its log again in a new epoch.

    Between the two epochs another replica may have led, and the leader may have truncated its log
    as a follower. This follower keeps the truncated records, fetches what comes after them, and
    counts as in sync.
    """
    return former_leader != leader


@mutant(
    "fetch-epoch-unfenced",
    of="broker_impl.replica.fencing:current_leader_epoch",
    source="A08, KAFKA-7395, KIP-320",
    kind="historic",
    symptom="lost-write",
    schedule="A follower does not learn of a new epoch and keeps fetching from a leader that was "
    "replaced meanwhile, has truncated its log and has been elected again.",
)
def current_leader_epoch(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """Leaders do not compare epochs: a follower's fetch is served, and counts, in any epoch.

    The follower does not know the leader's epoch, so it has not made its log a prefix of the
    leader's. What the leader takes for copies of its own records may be other records.
    """
    return ErrorCode.NONE


@mutant(
    "diverging-fetch-counts",
    of="broker_impl.replica.isr:reports_log_end",
    source="A11, KAFKA-13141",
    kind="historic",
    symptom="lost-write",
    schedule="A former leader comes back with uncommitted records and fetches from its "
    "successor, which dies before the former leader has fetched again.",
)
def reports_log_end(error: ErrorCode, diverged: bool, again: bool) -> bool:
    """A leader takes every fetch offset for the follower's log end, even if the log diverges.

    A former leader may hold more records than the new one, none of them committed. The new leader
    makes it truncate them, but already counts it as in sync: what the new leader appends in their
    place is acknowledged before any follower has fetched it. Kafka had this bug from 2.7, the first
    release that looks at a fetch's epoch, to 2.8.
    """
    return error is ErrorCode.NONE and not again


@mutant(
    "stale-truncation-response-used",
    of="broker_impl.replica.follower:counts",
    source="A07, KAFKA-7786",
    kind="historic",
    symptom="lost-write",
    schedule="A follower asks its leader where its last epoch ended; before the response "
    "arrives, another replica is elected whose log ends earlier in that epoch.",
    tier=2,
)
def counts(asked: Epoch, leader_epoch: Epoch, is_awaited: bool) -> bool:
    """A follower that waits for an answer accepts any answer, even one of the previous leader.

    It truncates its log, or does not, as the former leader answered, and fetches from the new
    leader, which may never have had the records that the other two share. The logs agree after the
    fetch offset, but not before it, and the follower counts as in sync.
    """
    return is_awaited


@mutant(
    "epoch-cache-untruncated-at-leo",
    of="broker_impl.replica.follower:cuts",
    source="A15, KAFKA-10706",
    kind="historic",
    symptom="stuck",
    schedule="A leader is replaced before it has appended a record in its epoch, and becomes a "
    "follower.",
    tier=2,
)
def cuts(offset: Offset, log_end: Offset) -> bool:
    """A follower truncates its epoch cache only if it also truncates records.

    A former leader that appended nothing in its epoch keeps naming that epoch as that of its last
    record. Its new leader does not know the epoch and answers each fetch with the offset at which
    the logs diverge, which is where the follower's log ends. The follower truncates nothing and
    asks again, forever.
    """
    return offset < log_end


@mutant(
    "epoch-zero-lost-in-recovery",
    of="broker_impl.log.recovery:begins_epoch",
    source="A16, KAFKA-10432",
    kind="historic",
    symptom="invariant:epoch-cache",
    schedule="Power is lost in the first epoch of a log, and the file with the leader epochs is "
    "lost with it.",
    tier=3,
)
def begins_epoch(epoch: Epoch, latest: Epoch) -> bool:
    """Recovery ignores epoch 0 when it rebuilds the epoch cache from the log.

    After a crash the log does not know the epoch of its first records. A follower that has no epoch
    to ask by truncates to its own watermark, as before KIP-101, and a leader cannot answer for that
    epoch either.
    """
    return epoch > max(latest, 0)


@mutant(
    "metadata-isr-outdated",
    of="broker_impl.api.cluster_view:is_news",
    source="E5",
    kind="mutation",
    symptom="stuck",
    schedule="A follower leaves the ISR and returns to it, under one leader.",
)
def is_news_of_leaders(update_epoch: Epoch, known_epoch: Epoch) -> bool:
    """A broker accepts what the controller sends of a partition only if its leader has changed.

    Its clients and operators see the ISR as it was when the leader was elected: monitoring shows
    partitions with too few replicas for ever, or none although some are missing.
    """
    return update_epoch > known_epoch


@mutant(
    "metadata-epoch-regress",
    of="broker_impl.api.cluster_view:is_news",
    source="A21, KAFKA-7738, KAFKA-9212",
    kind="historic",
    symptom="invariant:metadata-epoch-monotone",
    schedule="A controller's request to a broker is delayed and duplicated, and arrives when the "
    "broker already knows the next leader.",
    tier=2,
)
def is_news(update_epoch: Epoch, known_epoch: Epoch) -> bool:
    """A broker accepts every leader that the controller names, whatever its leader epoch.

    A message that arrives late sends the broker's clients back to a leader that was replaced. That
    leader rejects them until the broker gets newer metadata, or it does not know that it was
    replaced, and serves them.
    """
    return True
