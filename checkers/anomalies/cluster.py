"""Anomalies of the cluster itself: ends of logs that go back, standstills and crashes."""

from checkers.anomalies.anomaly import Anomaly
from checkers.anomalies.legality import (
    from_former_leader,
    lost_or_from_former_leader,
    member_timeout,
    transaction_timeout,
)

ANOMALIES = (
    Anomaly(
        id="hw-regress",
        checker="watermarks",
        summary="A high watermark went back.",
        definition=(
            "a leader reported a smaller high watermark than had been reported before the request "
            "began"
        ),
        allows=from_former_leader,
        legal_when=(
            "faults explain that a former leader answered from memory ([below](#former-leaders))"
        ),
    ),
    Anomaly(
        id="lso-regress",
        checker="watermarks",
        summary="A last stable offset went back.",
        definition="`hw-regress` for the last stable offset",
        allows=from_former_leader,
        legal_when="as `hw-regress`",
    ),
    Anomaly(
        id="log-start-regress",
        checker="watermarks",
        summary="The start of a log went back.",
        definition=(
            "`hw-regress` for the log start offset. In a history with deletions only the starts "
            "in the answers to deletions count: a leader reported a smaller start after such an "
            "answer, or a reader that began after it received a record from before that start"
        ),
        allows=from_former_leader,
        legal_when="as for `hw-regress`",
    ),
    Anomaly(
        id="acked-above-end",
        checker="watermarks",
        summary="A leader reported a high watermark that excludes an acknowledged record.",
        definition=(
            "a leader reported a high watermark at or below a record that had been acknowledged, "
            "or read, before the request began"
        ),
        allows=lost_or_from_former_leader,
        legal_when=(
            "as for `hw-regress`; also with `acks=0`, or with `acks=1` and more than one replica, "
            "if the record was never read"
        ),
    ),
    Anomaly(
        id="stuck-lso",
        checker="watermarks",
        summary="A transaction is never ended, and blocks the readers of its partition.",
        definition=(
            "all faults are healed, and for longer than `transaction.timeout.ms` and 30 s more the "
            "last stable offset does not change, below the high watermark: a transaction is never "
            "ended"
        ),
        allows=transaction_timeout,
        legal_when="the offset did not change for a shorter time",
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="stuck-producer",
        checker="producers",
        summary="A transactional producer fails for long after all faults were healed.",
        definition=(
            "all faults are healed, and for longer than `transaction.timeout.ms` and 30 s more at "
            "least three attempts to take over a transactional id, or to commit with it, fail, by "
            "any process that holds the id"
        ),
        allows=transaction_timeout,
        legal_when="the attempts failed for a shorter time",
        counted_by="witnesses",
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="stuck-group",
        checker="progress",
        summary="A group reads no records of a partition for long after all faults were healed.",
        definition=(
            "all faults are healed, and for longer than `session.timeout.ms`, "
            "`max.poll.interval.ms` and 30 s more, in which no member joined or left, members poll "
            "and receive no records of a partition, although other readers have read some there"
        ),
        allows=member_timeout,
        legal_when=(
            "the members received no records for a shorter time, or the topic was or may have been "
            "deleted"
        ),
        counted_by="witnesses",
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="stuck",
        checker="availability",
        summary="A partition accepts no records for long after all faults were healed.",
        definition=(
            "all faults are healed, producers send for 30 s more to a partition whose topic was "
            "certainly not deleted, and none of the records is accepted"
        ),
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="unresponsive",
        checker="crashes",
        summary="A node runs, but answers nothing after all faults were healed.",
        definition=(
            "all faults are healed and proved to be, the process of a broker, a controller or "
            "ZooKeeper runs, and it answers no probe for 30 s"
        ),
        legal_when=(
            "never. It is not judged where a process such as Toxiproxy had ended, or a node was "
            "killed from outside"
        ),
        counted_by="witnesses",
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="crash",
        checker="crashes",
        summary="A broker or ZooKeeper exited although nothing had asked it to.",
        definition=(
            "a broker or ZooKeeper exited although nothing had asked it to; each exit counts"
        ),
        legal_when=(
            "never. An exit by a SIGKILL that Faultline did not send is no `crash`, and makes the "
            "verdict `unknown`"
        ),
        counted_by="witnesses",
        is_excused_by_unclean_elections=False,
    ),
)
