"""Anomalies of transactions: atomicity, isolation, fencing, and loops that are exactly-once."""

from checkers.anomalies.anomaly import Anomaly
from checkers.anomalies.legality import aborted, always, lost, uncommitted, unproven

ANOMALIES = (
    Anomaly(
        id="G1a",
        checker="phantom",
        summary="A record was read whose send is known to have failed.",
        definition=(
            "a record was read, by a poll of any outcome, although its write had certainly failed "
            "or its transaction was planned to abort"
        ),
        allows=aborted,
        legal_when="only for aborted transactions, with `isolation.level=read_uncommitted`",
        is_excused_by_unclean_elections=False,
        excused_by_late_end="of transactions",
    ),
    Anomaly(
        id="torn-transaction",
        checker="torn",
        summary="Some records of one transaction can be read, others of it are missing.",
        definition=(
            "some records of a committed transaction (or of one of which something was read) are "
            "in the log, and others are lost as for `lost-write`; counted once, with the lost "
            "records [folded](#what-is-counted-once) under it, but apart for records that another "
            "rule may permit to be lost"
        ),
        allows=lost,
        legal_when=(
            "as `lost-write`; also for a transaction in doubt, with "
            "`isolation.level=read_uncommitted`"
        ),
        excused_by_late_end="of transactions",
    ),
    Anomaly(
        id="precommitted-read",
        checker="precommitted",
        summary="A transaction read a record that it had sent itself and not yet committed.",
        definition="a transaction read a record that it had sent itself",
        allows=uncommitted,
        legal_when="`isolation.level=read_uncommitted`",
        excused_by_late_end="always",
    ),
    Anomaly(
        id="dirty-read",
        checker="transactions",
        summary="A record was read while the transaction that had sent it was still open.",
        definition=(
            "a record was read while the transaction that sent it was still open, as its later "
            "operations prove"
        ),
        allows=uncommitted,
        legal_when="`isolation.level=read_uncommitted`",
        excused_by_late_end="always",
    ),
    Anomaly(
        id="zombie-write",
        checker="transactions",
        summary="A transaction of a producer took effect after another producer had replaced it.",
        definition=(
            "a transaction happened after another process had taken over its transactional id"
        ),
    ),
    Anomaly(
        id="wr-cycle",
        checker="cycles",
        summary="Transactions read each other's records in a cycle: none can have been the first.",
        definition=(
            "transactions read each other's records in a cycle: each was committed before the "
            "next, and so before itself. Jepsen's G1c with edges of reads (*wr*) only, see "
            "[cycles](#cycles)"
        ),
        allows=uncommitted,
        legal_when="`isolation.level=read_uncommitted`",
        counted_by="witnesses",
        excused_by_late_end="always",
    ),
    Anomaly(
        id="G0",
        checker="cycles",
        summary=(
            "Records of two transactions are interleaved: each transaction comes before the other."
        ),
        definition=(
            "records of transactions are interleaved in the logs, so that each transaction has a "
            "record before one of the other"
        ),
        allows=always,
        legal_when="always: Kafka does not isolate writes",
        counted_by="witnesses",
    ),
    Anomaly(
        id="G1c",
        checker="cycles",
        summary="Transactions depend on each other in a cycle of reads and writes.",
        definition=(
            "a cycle of both kinds of dependencies: records that were read, and records that "
            "precede others"
        ),
        allows=always,
        legal_when="always, as `G0`; a cycle of reads alone is `wr-cycle`",
        counted_by="witnesses",
    ),
    Anomaly(
        id="lso-ahead",
        checker="transactions",
        summary="A leader reported a last stable offset above a record of an open transaction.",
        definition=(
            "a leader reported a last stable offset above a record of a transaction that was open "
            "during the request, and was committed later"
        ),
        excused_by_late_end="always",
    ),
    Anomaly(
        id="eos-mismatch",
        checker="outputs",
        summary="An input became committed output more than once, or never.",
        definition=(
            "in a consume-transform-produce loop whose outputs name their inputs "
            "(`model/transform.py`), an input became committed output more than once, or never "
            "although a committed position is past it"
        ),
        allows=unproven,
        legal_when=(
            "one of the transactions is known to be committed only because an output of it was "
            "read, with `isolation.level=read_uncommitted`"
        ),
        counted_by="witnesses",
    ),
)
