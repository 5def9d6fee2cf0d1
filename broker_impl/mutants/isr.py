"""Bugs in the guarantees of in-sync replicas: high watermark, acknowledgements, the ISR itself."""

from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.wire.types import BrokerId, Offset


@mutant(
    "ack-on-local-append",
    of="broker_impl.replica.acks:outcome",
    source="B07",
    kind="mutation",
    symptom="lost-write",
    schedule="The leader is killed, or isolated and replaced, while producers with acks=all write.",
)
def outcome(
    required: Offset, high_watermark: Offset, replicated: Offset, in_sync: int, isr_min: int
) -> ErrorCode | None:
    """acks=all is answered as soon as the leader has appended, like acks=1.

    A record that no follower has fetched yet is acknowledged although only one copy exists. The
    next leader comes from the ISR, which lacks it, and the old leader truncates it when it returns.
    """
    return ErrorCode.NONE


@mutant(
    "no-min-isr-check",
    of="broker_impl.replica.isr:enough_in_sync",
    source="B04, KAFKA-1555",
    kind="mutation",
    symptom="lost-write",
    schedule="The followers are isolated or paused for longer than replica.lag.time.max.ms, so "
    "that the ISR shrinks to the leader alone; then the leader loses its disk, or is replaced "
    "by an unclean election.",
)
def enough_in_sync(in_sync: int, isr_min: int) -> bool:
    """min.insync.replicas is ignored, before the append and after it.

    A leader whose followers have all left the ISR goes on to commit and acknowledge alone. Each of
    these records exists in one copy only, which is what the setting is meant to exclude.
    """
    return True


@mutant(
    "hw-uses-proposed-isr",
    of="broker_impl.replica.isr:counts",
    source="B03, KIP-497, KAFKA-8836",
    kind="mutation",
    symptom="lost-write",
    schedule="A leader is cut off from ZooKeeper and from its followers for longer than "
    "replica.lag.time.max.ms, and another is elected while clients still write to it.",
)
def counts(in_maximal_isr: bool, now: float, caught_up_at: float, lag_max: float) -> bool:
    """The high watermark waits only for followers that keep up, whether or not they are in the ISR.

    A follower that lags no longer counts from the moment at which the leader wants to remove it
    from the ISR. The controller does not know of that yet. It elects the next leader from the ISR
    that is in ZooKeeper, possibly the follower that lacks what was committed in the meantime.
    """
    return now - caught_up_at <= lag_max


@mutant(
    "hw-advances-under-min-isr",
    of="broker_impl.replica.watermark:high_watermark",
    source="B06, KAFKA-15583, KIP-966",
    kind="historic",
    symptom="lost-write",
    schedule="Producers with acks=1 write to a leader that is alone in the ISR, consumers read "
    "those records, and the leader loses them, or is replaced by an unclean election.",
    tier=2,
)
def high_watermark(current: Offset, replicated: Offset, enough_in_sync: bool) -> Offset:
    """The high watermark advances however few replicas are in sync.

    What a single survivor holds counts as committed and is shown to consumers, although the topic
    asks for more copies. If the survivor loses those records, consumers have read records that are
    gone. acks=all is rejected all the while, so only acks=1 writes such records.
    """
    return max(current, replicated)


@mutant(
    "consumer-reads-to-leo",
    of="broker_impl.replica.watermark:read_limit",
    source="B15, KAFKA-725",
    kind="mutation",
    symptom="lost-write",
    schedule="Followers are isolated or dead while producers write and consumers read, and the "
    "leader is replaced.",
)
def read_limit(
    replica_id: BrokerId,
    isolation: int,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_end: Offset,
) -> Offset:
    """Consumers read to the end of the log, like followers.

    They are served records that no follower has yet. If the leader dies, the next one puts other
    records at those offsets, and what was read is in no log.
    """
    return log_end


@mutant(
    "isr-write-no-cas",
    of="broker_impl.replica.isr:written_at",
    source="B01",
    kind="mutation",
    symptom="lost-write",
    schedule="A leader computes another ISR and is replaced before its write has reached "
    "ZooKeeper; later the new leader fails, and comes back.",
)
def written_at(zk_version: int) -> int:
    """A leader writes its ISR whatever version the state znode has meanwhile.

    If the controller has elected another leader in between, the write overwrites that choice with
    the former leader, its old epoch, and an ISR of itself alone. No broker notices until the next
    controller reads the znode and elects the next leader from that ISR. That replica lacks what was
    acknowledged since it was replaced, and all others truncate those records to follow it.
    """
    return -1


@mutant(
    "isr-cas-never-refreshed",
    of="broker_impl.replica.isr:looks_again",
    source="B02, KAFKA-2729, KAFKA-3042",
    kind="historic",
    symptom="stuck",
    schedule="A leader wants to change its ISR while ZooKeeper is unreachable or has another "
    "version of the ISR.",
)
def looks_again() -> bool:
    """A leader whose ISR write failed does not read the state znode again.

    It keeps using the znode version that it knows, which no later write can match. Its ISR stays as
    it is: followers that have caught up are not added, and followers that are gone are waited for.
    Kafka logged "cached zkVersion not equal to that in zookeeper, skip updating ISR" until the
    broker was restarted.
    """
    return False
