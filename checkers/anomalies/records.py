"""Anomalies of single records: lost, repeated, invented or read where they are not."""

from checkers.anomalies.anomaly import Anomaly
from checkers.anomalies.legality import (
    always,
    duplicated,
    lost,
    misacknowledged,
    resurrected_key,
    stale_key,
)

ANOMALIES = (
    Anomaly(
        id="lost-write",
        checker="loss",
        summary="An acknowledged record is missing from the log: a reader went past its offset.",
        definition=(
            "a record was acknowledged, or another record of its operation was read, which proves "
            "that the operation happened; and no reader received the record, although one went "
            "past its offset or read the log to its end. A record that was read before and is "
            "missing in the final reads is lost, too"
        ),
        allows=lost,
        legal_when=(
            "`acks=0`; `acks=1` with more than one replica, or with reassignments; the record is "
            "known only from a transaction in doubt, with `isolation.level=read_uncommitted`; in "
            "all cases only if no reader ever received the record, because consumers receive only "
            "what all in-sync replicas hold"
        ),
        excused_by_late_end="of transactions",
    ),
    Anomaly(
        id="duplicate",
        checker="duplicates",
        summary="One record is in the log at more than one offset.",
        definition=(
            "one value, sent once, is in the log at two offsets or more; reading one offset twice "
            "does not count"
        ),
        allows=duplicated,
        legal_when=(
            "the producer is not idempotent; or the records at all offsets but the last may have "
            "been deleted before the last offset was reported. If another record is at an offset "
            "that was acknowledged, the rule for `inconsistent-offsets` must permit that, too"
        ),
    ),
    Anomaly(
        id="inconsistent-offsets",
        checker="offsets",
        summary="One offset of one partition holds different records.",
        definition=(
            "one offset holds two values: two readers read different values, or an acknowledgement "
            "contradicts what was read"
        ),
        allows=misacknowledged,
        legal_when=(
            "only if acknowledgements alone disagree, `acks` is not `all`, and there is more than "
            "one replica"
        ),
        counted_by="offset",
    ),
    Anomaly(
        id="phantom",
        checker="phantom",
        summary="A record was read that no client had sent.",
        definition=(
            "a record was read that no process had tried to write anywhere, or that was written to "
            "a deleted topic of the same name"
        ),
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="misrouted",
        checker="misrouted",
        summary="A record was read from another partition than it was sent to.",
        definition="a record was read from another partition than it was sent to",
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="G1c-process",
        checker="early",
        summary="A process read a record before it began to send it.",
        definition=(
            "a process read a record by an operation that had ended before the same process began "
            "to send that record"
        ),
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="G1c-realtime",
        checker="early",
        summary="A record was read before another process began to send it.",
        definition=(
            "a process read a record by an operation that had ended before another process began "
            "to send that record"
        ),
        is_excused_by_unclean_elections=False,
    ),
    Anomaly(
        id="unseen-delayed",
        checker="loss",
        summary="An acknowledged record was first read long after its acknowledgement.",
        definition="a record was first read more than 30 s after its acknowledgement",
        allows=always,
        legal_when="always: late is not wrong",
    ),
    Anomaly(
        id="unseen-unchecked",
        checker="loss",
        summary="An acknowledged record is beyond the offsets that readers reached.",
        definition="a record was acknowledged, and no reader read as far as its offset",
        allows=always,
        legal_when="always, but the verdict is `unknown` then, because there is no evidence",
    ),
    Anomaly(
        id="stale-key",
        checker="compacted",
        summary="A reader passed the last record of a key, and was given an older one or none.",
        definition=(
            "in a compacted partition a reader passed the offset of a record before any write "
            "that could replace the record had begun; but the last record of that record key that "
            "the reader received is an older one, or it received none"
        ),
        allows=stale_key,
        legal_when=(
            "`acks=0`; `acks=1` with more than one replica, or with reassignments; the record is "
            "known only from a transaction in doubt, with `isolation.level=read_uncommitted`"
        ),
    ),
    Anomaly(
        id="resurrected-key",
        checker="compacted",
        summary="A reader passed the tombstone of a key, and still has the deleted record.",
        definition=(
            "`stale-key` for a tombstone: the last record of the key that the reader received is "
            "one that the tombstone deletes"
        ),
        allows=resurrected_key,
        legal_when=(
            "`acks=0` and `acks=1` as for `stale-key`; the tombstone is older than "
            "`delete.retention.ms`"
        ),
    ),
)
