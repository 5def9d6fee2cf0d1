"""Bugs in how an ensemble of ZooKeeper servers elects a leader, and in what lets it lead."""

from collections.abc import Collection, Mapping
from typing import Any

from broker_impl.mutants import mutant
from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.quorum.ensemble import Ensemble, ServerId
from broker_impl.zookeeper.quorum.notifications import Vote


@mutant(
    "zk-quorum-of-half",
    of="broker_impl.zookeeper.quorum.ensemble:is_quorum",
    source="M1",
    kind="mutation",
    symptom="invariant:zab-one-leader-per-epoch",
    schedule="A server is separated from all others.",
)
def is_quorum(voters: Collection[ServerId], supporters: Collection[ServerId]) -> bool:
    """Half of the voters, rounded down, are a quorum.

    Of three servers one is enough: each elects itself when it hears of no other, and both sides of
    a partition accept writes. One side's are truncated afterwards.
    """
    return sum(server in supporters for server in voters) >= max(1, len(voters) // 2)


@mutant(
    "zk-commit-without-quorum",
    of="broker_impl.zookeeper.quorum.ensemble:supported_by_quorum",
    source="M7",
    kind="mutation",
    symptom="invariant:zab-commit-quorum",
    schedule="The leader writes while its followers are slow, and loses its place.",
)
def supported_by_quorum(
    voters: Collection[ServerId], acknowledged: Mapping[ServerId, int], nothing: int
) -> int:
    """A transaction is committed with the first acknowledgement, which is mostly the leader's own.

    Clients are answered although no other server has the transaction yet. If the leader fails, the
    next one does not have it.
    """
    return max((acknowledged.get(server, nothing) for server in voters), default=nothing)


@mutant(
    "zk-votes-prefer-id",
    of="broker_impl.zookeeper.quorum.election_rules:supersedes",
    source="M5",
    kind="mutation",
    symptom="invariant:zab-leader-completeness",
    schedule="A server with a high id misses writes, and takes part in an election.",
    tier=2,
)
def supersedes(new: Vote, current: Vote) -> bool:
    """Votes of one epoch are compared by the server's id before the zxid.

    The server with the highest id wins even if it lacks transactions that are committed.
    """
    return (new.epoch, new.leader, new.zxid) > (current.epoch, current.leader, current.zxid)


@mutant(
    "zk-late-vote-keeps-epoch",
    of="broker_impl.zookeeper.quorum.election_rules:synchronized",
    source="ZOOKEEPER-1732, ZOOKEEPER-1818",
    kind="historic",
    symptom="invariant:zab-stuck",
    schedule="A follower joins an established leader later than the others; then a third server "
    "starts and compares their votes.",
    tier=3,
    is_planned=False,
)
def synchronized(vote: Vote, epoch: int) -> Vote:
    """A server keeps the vote with which it was elected, in the epoch before the election.

    Servers that have joined the same leader at different times have votes of different epochs. One
    that starts later finds no quorum of equal votes, and looks for a leader for ever.
    """
    return vote


@mutant(
    "zk-leader-forgets-promise",
    of="broker_impl.zookeeper.quorum.leader_rules:accept",
    source="ZOOKEEPER-335, ZOOKEEPER-1081",
    kind="historic",
    symptom="invariant:zab-stuck",
    schedule="A leader restarts before or after its epoch is established.",
)
def accept(history: History, epoch: int) -> None:
    """The leader asks others to accept its epoch, and does not write it to its own disk.

    After a restart it accepts that epoch a second time, from another leader: two leaders may then
    have a quorum for the same epoch, and number different transactions alike. If it has taken over
    its own history by then, its epochs contradict each other, and it does not start.
    """
    ledger: Any = history.ledger
    ledger._epochs.accepted = epoch


@mutant(
    "zk-zxid-set-early",
    of="broker_impl.zookeeper.quorum.leader_rules:accept",
    source="ZOOKEEPER-790",
    kind="historic",
    symptom="invariant:zab-leader-completeness",
    schedule="An elected server without a quorum of followers returns to the election, where "
    "another server has a longer history.",
    tier=2,
    is_planned=False,
)
def accept_early(history: History, epoch: int) -> None:
    """An elected server counts the beginning of its epoch as its last zxid before a quorum follows.

    If no quorum comes, it votes with that zxid in the next election, although its history ends
    earlier, and wins against servers that have more.
    """
    history.ledger.accept_epoch(epoch)
    history.last_zxid = zxids.first_of(epoch)


@mutant(
    "zk-leader-takes-longer-history",
    of="broker_impl.zookeeper.quorum.leader_rules:has_longer_history",
    source="ZOOKEEPER-1282",
    kind="mutation",
    symptom="invariant:zab-leader-completeness",
    schedule="A server with a shorter history is elected because votes are late.",
    tier=3,
)
def has_longer_history(theirs: tuple[int, int], ours: tuple[int, int]) -> bool:
    """A leader takes followers whose history is longer than its own.

    The election has normally excluded that. Where it has not, because votes were lost or the leader
    has restarted in between, the leader has them truncate what may be committed.
    """
    return False


@mutant(
    "zk-leader-without-quorum",
    of="broker_impl.zookeeper.quorum.leader_rules:may_lead",
    source="M9",
    kind="mutation",
    symptom="invariant:zab-stuck",
    schedule="A leader is separated from its followers, which elect another.",
)
def may_lead(ensemble: Ensemble, synced: Collection[ServerId]) -> bool:
    """A leader goes on although no quorum follows it any more.

    Its clients read an old state for ever, and their writes wait. When the partition ends, it does
    not join the others.
    """
    return True


@mutant(
    "zk-observers-vote",
    of="broker_impl.zookeeper.quorum.ensemble:is_quorum",
    source="M4",
    kind="mutation",
    symptom="invariant:zab-commit-quorum",
    schedule="With two observers: a leader is followed by observers only.",
    tier=2,
)
def is_quorum_of_all(voters: Collection[ServerId], supporters: Collection[ServerId]) -> bool:
    """Observers count for a quorum.

    A leader establishes its epoch with the promises of observers, which have not taken part in the
    commits of earlier epochs.
    """
    return 2 * len(set(supporters)) > len(voters)


@mutant(
    "zk-follows-earlier-epoch",
    of="broker_impl.zookeeper.quorum.learner_rules:may_follow",
    source="M6",
    kind="mutation",
    symptom="crash",
    schedule="A server that has accepted an epoch meets a leader of an earlier one.",
    tier=2,
    is_planned=False,
)
def may_follow(epoch: int, accepted: int) -> bool:
    """A server follows a leader whose epoch is earlier than one that it has accepted.

    It has promised not to: the later leader counts on it. Here the server ends when it is about to
    take over the earlier epoch.
    """
    return True


@mutant(
    "zk-promise-counts-twice",
    of="broker_impl.zookeeper.quorum.learner_rules:promise",
    source="ZOOKEEPER-1291",
    kind="mutation",
    symptom="invariant:zab-one-leader-per-epoch",
    schedule="Two servers ask for the promise of the same epoch, one after the other.",
    tier=2,
    is_planned=False,
)
def promise(epoch: int, accepted: int, current: int) -> int:
    """A server that has promised an epoch before promises it a second time.

    The first promise may have been to another server, so both may have a quorum for one epoch.
    """
    return current
