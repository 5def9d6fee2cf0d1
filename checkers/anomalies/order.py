"""Anomalies of the order of records: in logs, and in what readers receive."""

from checkers.anomalies.anomaly import Anomaly
from checkers.anomalies.legality import always, rebalanced, reordered, reordered_sends

ANOMALIES = (
    Anomaly(
        id="nonmonotonic-send",
        checker="order",
        summary="One producer's later record got an earlier offset.",
        definition=(
            "a later record of one process has an offset at or before that of its earlier record"
        ),
        allows=reordered,
        legal_when=(
            "`acks=0`; `acks=1` and more than one replica, if one of the two was never read, "
            "because it may be lost"
        ),
    ),
    Anomaly(
        id="int-nonmonotonic-send",
        checker="order",
        summary="Within one operation, a later record got an earlier offset.",
        definition="`nonmonotonic-send` within one operation",
        allows=reordered_sends,
        legal_when=(
            "as `nonmonotonic-send`; also without idempotence and with more than one request in "
            "flight"
        ),
    ),
    Anomaly(
        id="realtime-order",
        checker="order",
        summary="A record sent after another's acknowledgement got an earlier offset.",
        definition=(
            "a record has a lower offset than a record that had been acknowledged, or read, "
            "before its own write began. Either the later records are too low or the earlier ones "
            "too high: the smaller of the two groups is reported"
        ),
        allows=reordered,
        legal_when="`acks=0`; `acks=1` and more than one replica, if one of the two was never read",
    ),
    Anomaly(
        id="int-send-skip",
        checker="order",
        summary="Between two records of one operation there are records of others.",
        definition=(
            "two records that one operation sent one after the other have records of others "
            "between them; one finding stands for all such pairs of a partition"
        ),
        allows=always,
        legal_when="always: Kafka does not isolate writes",
    ),
    Anomaly(
        id="poll-skip",
        checker="polls",
        summary="A consumer went past a record that others could read.",
        definition="a reader that kept its assignment skipped records that others could read",
        allows=rebalanced,
        legal_when="consumers subscribe",
        counted_by="offset",
    ),
    Anomaly(
        id="int-poll-skip",
        checker="polls",
        summary="Within one poll, a record was left out that others could read.",
        definition="`poll-skip` within one poll",
        counted_by="offset",
    ),
    Anomaly(
        id="nonmonotonic-poll",
        checker="polls",
        summary="A consumer read an earlier offset after a later one.",
        definition="a reader that kept its assignment went back, or read an offset again",
        allows=rebalanced,
        legal_when="consumers subscribe",
        counted_by="offset",
    ),
    Anomaly(
        id="int-nonmonotonic-poll",
        checker="polls",
        summary="Within one poll, an earlier offset came after a later one.",
        definition="`nonmonotonic-poll` within one poll",
        counted_by="offset",
    ),
)
