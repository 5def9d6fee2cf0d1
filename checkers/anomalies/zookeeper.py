"""Anomalies of ZooKeeper: what its answers to clients must not show."""

from checkers.anomalies.anomaly import Anomaly
from checkers.anomalies.legality import Rule, disturbed, never


def _anomaly(
    id_: str,
    checker: str,
    summary: str,
    definition: str,
    *,
    allows: Rule = never,
    legal_when: str = "never",
) -> Anomaly:
    return Anomaly(
        id=id_,
        checker=checker,
        summary=summary,
        definition=definition,
        allows=allows,
        legal_when=legal_when,
        counted_by="witnesses",
        is_excused_by_unclean_elections=False,
    )


ANOMALIES = (
    _anomaly(
        "zk-nonlinearizable",
        "zk-linearizable",
        "The writes of a znode are not linearizable.",
        "no order of the creations, writes, deletions and rejections of a znode, and of the reads"
        " after the recovery, agrees with real time and explains every answer",
    ),
    _anomaly(
        "zk-lost-write",
        "zk-sync",
        "An acknowledged write is missing after the recovery.",
        "a write was acknowledged, and a read after `sync`, when all servers had recovered, shows"
        " an older state of the znode",
    ),
    _anomaly(
        "zk-lost-update",
        "zk-updates",
        "Two writes were acknowledged for one version of a znode.",
        "two acknowledged writes made the same version of a znode, so that one has undone the"
        " other",
    ),
    _anomaly(
        "zk-divergence",
        "zk-updates",
        "Two answers differ about one version of a znode.",
        "two answers show different data, or different transactions, for one version of a znode",
    ),
    _anomaly(
        "zk-version-order",
        "zk-updates",
        "The versions of a znode are in another order than its transactions.",
        "of two states of a znode, the one with the later `czxid` and `version` has no larger"
        " `mzxid`",
    ),
    _anomaly(
        "zk-realtime-order",
        "zk-real-time",
        "Writes are ordered against real time.",
        "a write that was acknowledged before another one was invoked, to whichever znodes, has"
        " the larger `mzxid`",
    ),
    _anomaly(
        "zk-wrong-version",
        "zk-updates",
        "A conditional write was accepted for another version than it named.",
        "a write on condition of a version was acknowledged, and made another version than the"
        " next one",
    ),
    _anomaly(
        "zk-garbage-read",
        "zk-origins",
        "A read returned data that no client had written.",
        "a read returned data that no client has ever written to the znode, or not yet",
    ),
    _anomaly(
        "zk-aborted-read",
        "zk-origins",
        "A read returned the data of a rejected write.",
        "a read returned data whose only write the server had rejected",
    ),
    _anomaly(
        "zk-nonmonotonic-session",
        "zk-session-order",
        "A session went back to an older state of the ensemble.",
        "a reply has a smaller zxid than an earlier reply to the same session, on whichever server",
    ),
    _anomaly(
        "zk-nonmonotonic-read",
        "zk-session-reads",
        "A session read an older state of a znode than it had read before.",
        "a read shows an older state of a znode than an earlier read of the same session",
    ),
    _anomaly(
        "zk-read-your-writes",
        "zk-session-reads",
        "A session did not read its own write.",
        "a read shows an older state of a znode than the session itself had written",
    ),
    _anomaly(
        "zk-stale-read",
        "zk-session-reads",
        "A read was older than the state that its session had seen.",
        "a read shows an older state of a znode than existed at the zxid of an earlier reply to"
        " the session",
    ),
    _anomaly(
        "zk-stale-sync-read",
        "zk-sync",
        "A read after sync did not show an acknowledged write.",
        "a write was acknowledged, and a read after `sync` that began later shows an older state"
        " of the znode",
        allows=disturbed,
        legal_when=(
            "a fault within 30 s may have replaced the leader: `sync` makes no promise then"
            " (ZOOKEEPER-1675)"
        ),
    ),
    _anomaly(
        "zk-ephemeral-lost",
        "zk-lost-ephemerals",
        "An ephemeral znode vanished while its session lived.",
        "a read shows no ephemeral znode, and its session had created it before, was alive later"
        " (a later write of it was acknowledged), and nothing may have deleted it",
    ),
    _anomaly(
        "zk-ephemeral-outlived",
        "zk-ended-sessions",
        "An ephemeral znode outlived its session.",
        "a read shows an ephemeral znode although its session has seen the zxid of the owner's"
        " confirmed `close`; or a read after the recovery shows one when every session must have"
        " expired",
    ),
    _anomaly(
        "zk-expired-early",
        "zk-expiries",
        "A session expired long before its timeout.",
        "a write was acknowledged, and the client was answered that its session had expired less"
        " than half of the session's timeout after that write began",
        allows=disturbed,
        legal_when="`clock-skew` made the timers of a server run at another rate meanwhile",
    ),
    _anomaly(
        "zk-session-stolen",
        "zk-intruders",
        "A client with a wrong password was given a session.",
        "a server gave the session of another client to one with a wrong password",
    ),
    _anomaly(
        "zk-sequence-reused",
        "zk-sequences",
        "A sequential name was used twice.",
        "two acknowledged creations of sequential znodes returned the same name",
    ),
    _anomaly(
        "zk-sequence-order",
        "zk-sequences",
        "The numbers of sequential znodes are against real time.",
        "a sequential znode has a smaller number than one that was created before its creation"
        " began",
    ),
    _anomaly(
        "zk-lost-node",
        "zk-lists",
        "An acknowledged znode is missing after the recovery.",
        "a creation was acknowledged, nothing may have deleted the znode, and the list of children"
        " after `sync`, when all servers had recovered, lacks it",
    ),
    _anomaly(
        "zk-stale-list",
        "zk-lists",
        "A list of children was older than the state that its session had seen.",
        "a list of children lacks a znode that was created up to the zxid of an earlier reply to"
        " the session, and that nothing may have deleted",
    ),
    _anomaly(
        "zk-resurrected-node",
        "zk-lists",
        "A deleted znode is in a list of children.",
        "a list of children shows a sequential znode whose deletion was acknowledged up to the"
        " zxid that its session had seen, or, after the recovery, at all",
    ),
    _anomaly(
        "zk-phantom-node",
        "zk-lists",
        "A list of children shows a znode that nothing created.",
        "a list of children shows more names without an acknowledged creation than creations are"
        " in doubt",
    ),
    _anomaly(
        "zk-list-divergence",
        "zk-list-versions",
        "Two lists of children differ, and have the same version.",
        "two lists of the children of a znode have the same `cversion` and different children",
    ),
    _anomaly(
        "zk-torn-multi",
        "zk-torn-multis",
        "Only a part of a multi was executed, or visible.",
        "two znodes that are only written together differ in the transaction or the data of one"
        " version, or a read does not show a multi that its session has seen in another znode",
    ),
    _anomaly(
        "zk-unchecked-multi",
        "zk-multi-conditions",
        "A multi was executed although one of its conditions did not hold.",
        "a multi was acknowledged with a condition on a version that its znode cannot have reached",
    ),
    _anomaly(
        "zk-mutual-exclusion",
        "zk-exclusion",
        "A lock or an office had two holders at once.",
        "a client became the holder and got a fencing token (the `czxid` of its znode, or its"
        " epoch) while the holder with a smaller one still was: a write, or the release, that"
        " succeeds for a holder only, began later; or two holders have one token",
    ),
    _anomaly(
        "zk-fencing",
        "zk-fences",
        "A former holder wrote after a later one.",
        "of two writes on condition of the holder's znode or epoch, the one with the smaller"
        " fencing token has the larger `mzxid`",
    ),
    _anomaly(
        "zk-duplicate-dequeue",
        "zk-elements",
        "An element of a queue was taken twice.",
        "two clients were acknowledged to have deleted the znode of one element",
    ),
    _anomaly(
        "zk-phantom-element",
        "zk-elements",
        "An element was taken that no client had appended.",
        "the data of an element that was taken is in no creation, only in a rejected one, or in one"
        " that began later",
    ),
    _anomaly(
        "zk-lost-element",
        "zk-queue-losses",
        "An acknowledged element of a queue is lost.",
        "an element was acknowledged, no client may have taken it, and the queue does not have it"
        " after the recovery",
    ),
    _anomaly(
        "zk-early-barrier",
        "zk-barriers",
        "A client passed a barrier too early.",
        "a client passed a barrier before as many clients had tried to enter as it needs",
    ),
    _anomaly(
        "zk-watch-missed",
        "zk-watches",
        "A session saw a change of which its watch had not notified it.",
        "a session has a watch on a znode, and reads or writes a later state of it without an event"
        " of the watch before the answer, also over reconnections",
    ),
    _anomaly(
        "zk-watch-repeated",
        "zk-watches",
        "A one-shot watch fired twice.",
        "a session received two events of one watch, or an event without having a watch",
    ),
    _anomaly(
        "zk-watch-early",
        "zk-watches",
        "A watch fired before the change could be read.",
        "a session received the event of a watch, and a later read on the same connection shows the"
        " state in which the watch was set",
    ),
    _anomaly(
        "zk-counter-out-of-bounds",
        "zk-counter-bounds",
        "A counter had a value that no set of additions explains.",
        "a counter was above the sum of all additions that may have happened by then, or, after"
        " the recovery, below the sum of those acknowledged",
    ),
)
