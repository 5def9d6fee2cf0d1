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
    schedule="A follower restarts (or merely gets a new leader) before it has heard of the newest "
    "watermark, and the leader dies before the follower has fetched again.",
)
def on_new_epoch(log_end: Offset, high_watermark: Offset, latest_epoch: Epoch) -> Offset | None:
    """A follower cuts its log at its own high watermark before it follows, and asks nobody.

    Its watermark lags the leader's by a round trip, and after a restart by a checkpoint's age: it
    throws away records that it holds, that the leader counted, and that were acknowledged. If the
    leader dies before they are fetched again, this follower is elected out of the ISR without
    them. Until KIP-101 that was the protocol.
    """
    return min(high_watermark, log_end)


@mutant(
    "truncate-to-hw-diverge",
    of="broker_impl.replica.follower:compares_by",
    source="A02, KAFKA-1211, KIP-101",
    kind="historic",
    symptom="lost-write",
    schedule="Somebody comes to lead without records that a former leader counts as committed, "
    "appends others in their place, and the former leader follows it.",
)
def compares_by(latest_epoch: Epoch) -> Epoch:
    """Logs are compared by their offsets: no follower says of which epoch its last record is.

    It cuts its log at its own high watermark, takes what is left for a prefix of the leader's
    because it is no longer, and fetches behind it. If the leader came to lead without some of that,
    as it does where watermarks are all that logs are cut by, and has appended since, two replicas
    in sync have different records at one offset. What was acknowledged and read there is gone once
    the other leads, and its offset holds something else. Until KIP-101 a batch did not even tell
    of which epoch it was.
    """
    return follower.UNDEFINED


@mutant(
    "fast-failover-no-epoch-in-reply",
    of="broker_impl.log.epochs:told",
    source="A03, KAFKA-6361, KIP-279",
    kind="historic",
    symptom="lost-write",
    schedule="Two elections in a row, so that a follower's last epoch is one that the leader has "
    "never seen, and lies where the leader has records of the epoch before.",
)
def told(asked: Epoch, known: Epoch) -> Epoch:
    """A leader tells where the next epoch begins, and not of which epoch it speaks.

    A follower whose last records are of an epoch that the leader does not know takes the answer for
    the end of that epoch. It keeps records that the leader has others in place of, and both call
    themselves in sync. Until Kafka 2.0 the answer had no room for an epoch.
    """
    return asked


@mutant(
    "skip-follower-step-same-leader",
    of="broker_impl.replica.follower:starts_over",
    source="A04, KAFKA-7164",
    kind="historic",
    symptom="lost-write",
    schedule="A follower misses an epoch: its leader is replaced, cuts its log under the other, "
    "and leads again, while the controller's orders do not reach the follower.",
    tier=2,
)
def starts_over(former_leader: BrokerId | None, leader: BrokerId) -> bool:
    """A follower whose leader stays the same goes on as it was, whatever the epoch.

    Between the two epochs somebody else may have led, under whom the leader has cut its log. The
    follower keeps what was cut off, fetches what comes behind it, and counts as in sync.
    """
    return former_leader != leader


@mutant(
    "fetch-epoch-unfenced",
    of="broker_impl.replica.fencing:current_leader_epoch",
    source="A08, KAFKA-7395, KIP-320",
    kind="historic",
    symptom="lost-write",
    schedule="A follower hears of no new epoch and goes on fetching from a leader that was "
    "replaced meanwhile, has cut its log, and leads again.",
)
def current_leader_epoch(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """Nobody compares leader epochs: a follower of any epoch is served, and counts.

    It has not been told of the leader's epoch, so it has not made its log a prefix of the leader's.
    What the leader takes for a copy of its records may be a copy of others.
    """
    return ErrorCode.NONE


@mutant(
    "diverging-fetch-counts",
    of="broker_impl.replica.isr:tells_log_end",
    source="A11, KAFKA-13141",
    kind="historic",
    symptom="lost-write",
    schedule="A former leader comes back with more than was committed, fetches from its successor, "
    "and the successor dies before it has fetched again.",
)
def tells_log_end(error: ErrorCode, diverged: bool, again: bool) -> bool:
    """A leader takes the offset of every fetch for what the follower holds, of this history or not.

    Who led before may hold more than the new leader, of records that nobody committed. It is told
    to cut them off, and counted as in sync with them all the same: what the new leader appends in
    their place is acknowledged before anybody has fetched it. That was in Kafka from 2.7, the first
    release to look at a fetch's epoch, to 2.8.
    """
    return error is ErrorCode.NONE and not again


@mutant(
    "stale-truncation-response-used",
    of="broker_impl.replica.follower:counts",
    source="A07, KAFKA-7786",
    kind="historic",
    symptom="lost-write",
    schedule="A follower asks its leader where its last epoch ended, and before it has the answer "
    "another leads, whose log is shorter there.",
    tier=2,
)
def counts(asked: Epoch, leader_epoch: Epoch, is_awaited: bool) -> bool:
    """A follower that waits for an answer takes any, also that of the leader before.

    It cuts its log, or does not, as the former leader has told it to, and fetches from the next
    one, which may never have had what both of them have. Behind it the logs agree; before it they
    do not, and the follower counts as in sync.
    """
    return is_awaited


@mutant(
    "epoch-cache-untruncated-at-leo",
    of="broker_impl.replica.follower:cuts",
    source="A15, KAFKA-10706",
    kind="historic",
    symptom="stuck",
    schedule="A leader is replaced before it has appended anything in its epoch, and follows.",
    tier=2,
)
def cuts(offset: Offset, log_end: Offset) -> bool:
    """Where no record is to be cut off nothing is cut, not even an epoch that began there.

    Who led in it goes on to name it as that of its last record. Its leader does not know it, and
    answers each fetch with the offset at which their logs part, which is where the follower's log
    ends already. It cuts nothing again, and asks again, for ever.
    """
    return offset < log_end


@mutant(
    "epoch-zero-lost-in-recovery",
    of="broker_impl.log.recovery:begins_epoch",
    source="A16, KAFKA-10432",
    kind="historic",
    symptom="invariant:epoch-cache",
    schedule="Power is lost in the first epoch of a log, and with it the file that tells of it.",
    tier=3,
)
def begins_epoch(epoch: Epoch, latest: Epoch) -> bool:
    """Epochs that are found in the log count from 1 on; epoch 0 was taken for none.

    After a crash the log does not know of which epoch its first records are. Who cannot tell by
    which epoch to ask cuts at its own watermark, as before KIP-101, and who leads cannot answer for
    that epoch either.
    """
    return epoch > max(latest, 0)


@mutant(
    "metadata-epoch-regress",
    of="broker_impl.api.cluster_view:is_news",
    source="A21, KAFKA-7738, KAFKA-9212",
    kind="historic",
    symptom="invariant:metadata-epoch-monotone",
    schedule="A message of the controller to a broker is late, is sent again, and comes when the "
    "next leader has been told of.",
    tier=2,
)
def is_news(told_epoch: Epoch, known_epoch: Epoch) -> bool:
    """A broker believes whatever it is told last, of whichever epoch it is.

    A message that comes late sends its clients back to a leader that was replaced, who sends them
    away again, until the broker is told anew; or who has not heard of it, and serves them.
    """
    return True
