"""The invariants of servers of a ZooKeeper ensemble."""

from checkers.invariants.row import Invariant

ZAB = (
    Invariant(
        id="zab-epochs-monotone",
        rules="I1",
        summary="A server's accepted or current epoch went back, or is below that of its log.",
        holds=(
            "the epochs on a server's disk never go back, not even over restarts: accepted epoch ≥ "
            "current epoch ≥ epoch of the last transaction in its log"
        ),
    ),
    Invariant(
        id="zab-epoch-of-role",
        rules="I9, ZOOKEEPER-335",
        summary="A server serves clients in an epoch that is not the one on its disk.",
        holds="a server that serves clients has accepted and taken over the epoch of its leader",
    ),
    Invariant(
        id="zab-log-in-order",
        rules="I2, ZOOKEEPER-4712",
        summary="The transactions of a server's log do not follow each other.",
        holds=(
            "in a log each transaction has the next number of its epoch, or is the first of a "
            "later epoch"
        ),
    ),
    Invariant(
        id="zab-one-transaction-per-zxid",
        rules="I3",
        summary="Two different transactions were logged with the same zxid.",
        holds="a zxid is one transaction, on all servers and at all times",
    ),
    Invariant(
        id="zab-one-leader-per-epoch",
        rules="I5, ZOOKEEPER-335",
        summary="Two servers led the same epoch.",
        holds="no two servers ever have the promises of a quorum for the same epoch",
    ),
    Invariant(
        id="zab-durable-acknowledgement",
        rules="I7, ZOOKEEPER-3911, ZOOKEEPER-4646",
        summary="A server acknowledged what its disk may lose.",
        holds=(
            "what a leader counts as acknowledged, a transaction or the history before NEWLEADER, "
            "survives a power loss of the server that acknowledged it"
        ),
    ),
    Invariant(
        id="zab-agreement",
        rules="I2, I4",
        summary="Servers have applied different sequences of transactions.",
        holds=(
            "what a server that serves clients has applied is a prefix of one order, without gaps, "
            "and is in its log"
        ),
    ),
    Invariant(
        id="zab-commit-quorum",
        rules="I8",
        summary="A transaction was applied that a majority of the voters does not have.",
        holds="what is committed is durable on a majority of the voters",
    ),
    Invariant(
        id="zab-committed-truncated",
        rules="I10, ZOOKEEPER-4643",
        summary="A committed transaction was removed from a server's log.",
        holds="a server never loses a committed transaction that its disk had",
    ),
    Invariant(
        id="zab-leader-completeness",
        rules="I6",
        summary="A leader lacks committed transactions of earlier epochs.",
        holds="a leader with the promises of a quorum has all that was ever committed before",
    ),
    Invariant(
        id="zab-equal-states",
        rules="I3, I11, ZOOKEEPER-2845",
        summary="Two servers have different nodes or sessions after the same transaction.",
        holds="after the same zxid all servers have the same nodes and sessions",
    ),
    Invariant(
        id="zk-same-after-kill",
        rules="I1",
        summary="The history in a ZooKeeper server's memory is not the one that its files have.",
        holds=(
            "what is loaded from the files of a running server, also after a loss of all that is "
            "not synced, is its log with its epochs, nodes and sessions"
        ),
        suspended_under=(
            "other moments than the end, and one snapshot out of 500; nodes and sessions while "
            "transactions of the log wait to be applied"
        ),
    ),
    Invariant(
        id="zab-stuck",
        rules="I13",
        summary="A server does not serve clients long after the last fault.",
        holds=(
            "some time after the last heal every server runs, serves in the same epoch, and has "
            "applied all that is committed"
        ),
    ),
)
