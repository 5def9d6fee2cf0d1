"""The invariants: what the state of brokers and servers must satisfy, one entry each."""

from checkers.invariants.log_answer_rows import LOG_ANSWERS
from checkers.invariants.row import Invariant
from checkers.invariants.transaction_rows import TRANSACTIONS
from checkers.invariants.zab_rows import ZAB

INVARIANTS = (
    Invariant(
        id="log-matching",
        rules="R4",
        summary="Below its high watermark, a replica's log differs from what was committed.",
        holds="below its own watermark a replica agrees with what leaders have committed",
        suspended_under="unclean elections; compacted logs",
    ),
    Invariant(
        id="leader-completeness",
        rules="R1",
        summary="A leader lacks committed records, or has others in their place.",
        holds="a leader has, unchanged, everything that leaders up to its own epoch have committed",
        suspended_under=(
            "unclean elections; power losses that left no complete member of the ISR; of compacted "
            "logs only the ends are compared"
        ),
    ),
    Invariant(
        id="candidate-completeness",
        rules="R2",
        summary="A replica that may be elected lacks committed records.",
        holds=(
            "the same holds for each running member of the ISR in ZooKeeper, also between two "
            "snapshots if it truncated its log in between"
        ),
        suspended_under="as above; a member that lost power, until it has caught up",
    ),
    Invariant(
        id="truncation-below-hw",
        rules="E6",
        summary="A replica truncated its log below what it knew to be committed.",
        holds="no replica truncates its log below its own watermark",
        suspended_under="unclean elections; power losses as above",
    ),
    Invariant(
        id="one-log-per-epoch",
        rules="E3",
        summary="Two different batches have the same offset and leader epoch.",
        holds="an offset in a leader epoch is one batch, on all brokers and at all times",
        suspended_under="epochs whose leader lost power; compacted logs",
    ),
    Invariant(
        id="one-leader-per-epoch",
        rules="E1",
        summary="Two brokers led a partition in the same epoch.",
        holds="no two brokers ever lead in one epoch",
    ),
    Invariant(
        id="leader-as-elected",
        rules="E2",
        summary="A broker leads a partition although ZooKeeper names another leader.",
        holds=(
            "no broker leads in an epoch later than ZooKeeper's, and in ZooKeeper's epoch only the "
            "broker that ZooKeeper names"
        ),
    ),
    Invariant(
        id="leader-hw-monotone",
        rules="R7",
        summary="A leader's high watermark went back within its epoch.",
        holds=(
            "in one epoch, and without a restart of the broker, a leader's watermark never goes "
            "back"
        ),
    ),
    Invariant(
        id="hw-below-min-isr",
        rules="R9, KIP-966",
        summary="The high watermark advanced with too few replicas in sync.",
        holds="the watermark does not move while fewer than `min.insync.replicas` are in sync",
        suspended_under="brokers that do not promise it (Kafka before 3.7)",
    ),
    Invariant(
        id="isr-superset",
        rules="R3, KIP-497",
        summary="A leader's maximal ISR has fewer replicas than the ISR in ZooKeeper.",
        holds="a leader in ZooKeeper's epoch counts at least the replicas of the ISR in ZooKeeper",
    ),
    Invariant(
        id="laggard-leaves-isr",
        rules="KAFKA-1546, KIP-16",
        summary="A leader keeps a follower in the ISR that has lagged for too long.",
        holds=(
            "a leader that receives records does not find all members of the ISR in sync while one "
            "has lagged for more than `replica.lag.time.max.ms`"
        ),
    ),
    Invariant(
        id="exposed-end-monotone",
        rules="R7, KIP-207",
        summary="A log's end that clients had seen went back later.",
        holds=(
            "the end that ListOffsets reported in one epoch is not above one reported in a later "
            "epoch"
        ),
        suspended_under="unclean elections",
    ),
    *LOG_ANSWERS,
    Invariant(
        id="member-refused",
        rules="G1, KAFKA-2596, KIP-345, KIP-447",
        summary="A coordinator accepted a request that it must refuse, or refused a right one.",
        holds=(
            "a heartbeat, a commit or a sync is refused exactly if its member is unknown or was "
            "replaced, or its generation is not the current one; a heartbeat during a rebalance "
            "announces it, and no member commits while a rebalance completes; a commit in a "
            "transaction may also name no member"
        ),
    ),
    Invariant(
        id="joined-as-member",
        rules="G1, G4, KIP-389",
        summary="A generation has a member that has not joined it, or goes on after a join.",
        holds=(
            "the answer to a JoinGroup names the generation of the group, which has its member "
            "and no more members than `group.max.size`; each dynamic member of the generation "
            "before has joined again; a member that joins again with another subscription, and the "
            "leader of a stable group, are answered in a later generation"
        ),
    ),
    Invariant(
        id="subscribed-as-sent",
        rules="G1, KIP-62",
        summary="The leader of a generation received another subscription than a member has sent.",
        holds=(
            "the protocol of a generation is one that each of its members supports, all members "
            "receive the same one, and the leader receives each member's subscription for it"
        ),
    ),
    Invariant(
        id="assigned-as-given",
        rules="G1, KIP-345, KAFKA-9801",
        summary="A member received another assignment than its leader has sent.",
        holds=(
            "in a generation, a member receives what the leader has assigned to it, or to the "
            "static member that it replaces"
        ),
    ),
    Invariant(
        id="members-as-stored",
        rules="G4, KIP-62, KIP-211, KIP-229, KIP-345, KAFKA-10284",
        summary="A coordinator that has loaded a group has other members than were acknowledged.",
        holds=(
            "each coordinator whose log has what was acknowledged to the members of a generation "
            "has these members while the generation lasts, with their timeouts, subscriptions and "
            "assignments, the topics that they use, and for each instance id the static member "
            "that came last; it has them in no earlier generation, and not once the record is "
            "committed that the group has lost its last member; a group whose deletion was "
            "acknowledged is not there until a member joins it"
        ),
        suspended_under="assignments that a leader has sent twice in a generation",
    ),
    Invariant(
        id="coordinated-as-stored",
        rules="G4, T4, KIP-98, KIP-211",
        summary="A coordinator has other groups, offsets or transactions than its log.",
        holds=(
            "a coordinator whose log is committed has the stable groups, the committed offsets and "
            "the transactional ids that another broker would load from this log; when it has just "
            "loaded groups, it has exactly those of its log, which is committed"
        ),
        suspended_under=(
            "what is being written, or was written later than what the coordinator has, because a "
            "write that has failed may be in the log; missing offsets and transactional ids, "
            "if a later tombstone is in the log or may have been compacted; groups that "
            "rebalance; the members of groups without members, and of groups whose static members "
            "differ; transactions under `clock-jump` and `clock-skew`; other moments than the end, "
            "and one snapshot out of 100"
        ),
    ),
    Invariant(
        id="removed-after-timeout",
        rules="KIP-62, KIP-345",
        summary="A coordinator removed a member too early.",
        holds=(
            "a member that sends heartbeats and does not leave is removed only if it has not "
            "joined for its own rebalance timeout since a rebalance began, or has not sent "
            "SyncGroup for so long; its session begins when its JoinGroup is answered"
        ),
    ),
    Invariant(
        id="rebalance-in-time",
        rules="KIP-62, KAFKA-12890",
        summary="A coordinator waits for members after their timeouts.",
        holds=(
            "once the longest rebalance timeout of a group has passed, a rebalance that members "
            "have joined has ended, and members that have not sent SyncGroup are removed"
        ),
    ),
    Invariant(
        id="left-as-acknowledged",
        rules="KIP-345",
        summary="A member is in its group after its LeaveGroup, or has left for another one.",
        holds=(
            "a member is not in its group once its LeaveGroup is accepted, or that of a tool which "
            "removes it by its member id or its instance id; one that was replaced by a member "
            "with its instance id is refused"
        ),
    ),
    Invariant(
        id="group-deleted-unused",
        rules="KIP-229",
        summary="A group was deleted although it had members.",
        holds="a group that has members is not deleted",
    ),
    *TRANSACTIONS,
    Invariant(
        id="deleted-offset-returned",
        rules="KIP-229, KAFKA-2000",
        summary="A committed offset was returned after its group or its topic was deleted.",
        holds=(
            "an offset that was committed before its group or its topic was deleted, and not again "
            "since, is not returned by a coordinator whose log has the deletion"
        ),
        suspended_under=(
            "commits in transactions or without an acknowledgement; topics whose deletion the "
            "coordinator did not hear of, or could not commit within a quarter of "
            "`offsets.commit.timeout.ms`"
        ),
    ),
    Invariant(
        id="fetched-as-committed",
        rules="KIP-320, KIP-709",
        summary="A coordinator returned an offset that was never committed so, or left one out.",
        holds=(
            "an offset that is returned was once committed for its group and partition, with the "
            "same leader epoch and metadata; none is missing where all are asked for"
        ),
    ),
    Invariant(
        id="leaked",
        rules="KIP-11",
        summary="A broker returned records to a client that had no right to read them.",
        holds=(
            "a client gets no record from a broker that says before its request and after the "
            "response that the client has no right to read"
        ),
        suspended_under="plans without `outsider_ms`",
    ),
    Invariant(
        id="wrong-password-accepted",
        rules="KIP-12, KIP-368",
        summary="A broker authenticated a client by a password that its user never had.",
        holds="a client is authenticated, for the first time or again, by the right password only",
        suspended_under="plans without `security`; other targets than `simulated`",
    ),
    Invariant(
        id="expired-login-served",
        rules="KIP-368",
        summary="A broker answered a client whose authentication had expired.",
        holds=(
            "after `connections.max.reauth.ms`, by the broker's clock, a client that has not "
            "authenticated again is not answered"
        ),
        suspended_under="plans without `security`; other targets than `simulated`",
    ),
    Invariant(
        id="unexpected-error",
        rules="all",
        summary="A request failed with an exception that the code of the node does not expect.",
        holds="no node logs an exception as an error and runs on (one that ends is a `crash`)",
        suspended_under="other targets than `simulated`",
    ),
    Invariant(
        id="offsets-in-order",
        rules="L1",
        summary="Log start, high watermark and log end are not in this order.",
        holds="log start ≤ high watermark ≤ log end",
    ),
    Invariant(
        id="log-start-monotone",
        rules="KIP-107, KIP-113",
        summary="The start of a log went back, so that deleted records can be read again.",
        holds=(
            "while a broker runs, the start of a log goes back only with a truncation or in a new "
            "log"
        ),
    ),
    Invariant(
        id="same-after-kill",
        rules="L1, L2, P3",
        summary="A log in a broker's memory is not the log that its files have.",
        holds=(
            "what is loaded from the files of a running broker is the log that it has in memory: "
            "its end, topic id, epochs with records, sizes of segments, producers, aborted "
            "transactions and largest timestamps; its start, its recovery point and the offset up "
            "to which it is compacted are not later than in memory"
        ),
        suspended_under=(
            "unclean elections; compacted logs, except for segments and epochs; producers that may "
            "expire, also by `clock-jump` and `clock-skew`; other moments than the end, and those "
            "after a truncation, retention or compaction"
        ),
    ),
    Invariant(
        id="durable-to-recovery-point",
        rules="L4, KAFKA-3968",
        summary="A loss of power would take what recovery trusts.",
        holds=(
            "after a loss of all that is not synced, what is loaded of a log below its recovery "
            "point is what the broker has in memory"
        ),
        suspended_under=(
            "unclean elections; other moments than the end, and those after a truncation, "
            "retention or compaction; the producers of a log; of compacted logs, all but the "
            "sizes of segments; truncations that are not synced, which count as done"
        ),
    ),
    Invariant(
        id="log-in-order",
        rules="L5",
        summary="The offsets or leader epochs of a log do not increase.",
        holds=(
            "along a log offsets increase and leader epochs never decrease; the last batch ends at "
            "the log end"
        ),
        suspended_under="the last batch of a compacted log",
    ),
    Invariant(
        id="epoch-cache",
        rules="E4",
        summary="A leader epoch cache does not match its log, or does not increase.",
        holds=(
            "the epoch cache increases strictly, ends within the log, and has the epoch of each "
            "batch"
        ),
    ),
    Invariant(
        id="producer-state",
        rules="P3, KIP-98",
        summary="The producer state of a log does not match its batches.",
        holds=(
            "the producer state equals what a replay of the log gives, and no producer is "
            "forgotten while its transaction is open"
        ),
        suspended_under=(
            "a log without its beginning: only what the log still shows is compared, and that no "
            "producer is forgotten whose records are deleted; producers that expired; "
            "compacted logs"
        ),
    ),
    Invariant(
        id="compaction-as-configured",
        rules="KIP-58, KIP-534, KAFKA-8522, KAFKA-12840",
        summary="A log was compacted that must not be, or too early, or its tombstones stay.",
        holds=(
            "segments are replaced only where the `cleanup.policy` that the broker knows asks for "
            "it, and once their records are older than `min.compaction.lag.ms`; no pass postpones "
            "the time at which the tombstones or the marker of a batch may be removed"
        ),
    ),
    Invariant(
        id="compacted-to-latest",
        rules="KIP-58, KIP-534",
        summary="Compaction has removed or changed the last record of a key, or left others.",
        holds=(
            "a compacted log has the last record of each key that is committed, in a transaction "
            "or outside of one, with its value, timestamp and headers; a tombstone may be removed; "
            "below the offset up to which the log is compacted, no key has two records"
        ),
        suspended_under="unclean elections; brokers that have lost power",
    ),
    Invariant(
        id="retained-as-configured",
        rules="KIP-33, KAFKA-70",
        summary="Retention has deleted a segment that the settings keep, or kept another.",
        holds=(
            "a segment is deleted only if its newest record is older than `retention.ms` by the "
            "broker's clock, if `retention.bytes` remain without it, or if the log starts after it"
            "; when retention has run, this is so of no first segment that is committed"
        ),
        suspended_under=(
            "compacted logs; segments that are deleted before a snapshot shows their batches"
        ),
    ),
    Invariant(
        id="settings-of-topic",
        rules="KIP-21, KIP-516",
        summary="A broker applies the settings of a deleted topic to the next one of its name.",
        holds=(
            "a broker whose logs have the id of a topic has settings of this topic, and not those "
            "that only a former topic of the name had"
        ),
    ),
    Invariant(
        id="settings-kept",
        rules="KIP-339",
        summary="A change of a topic's settings was acknowledged, and is lost.",
        holds=(
            "what an IncrementalAlterConfigs has set is in ZooKeeper until another request names "
            "the same setting, replaces all settings of the topic, or deletes it"
        ),
        suspended_under=(
            "settings that several requests named at the same time, or one that was never answered"
        ),
    ),
    Invariant(
        id="state-version",
        rules="R14",
        summary="A partition's state changed in ZooKeeper without a conditional write.",
        holds=(
            "a partition's state changes by conditional writes: other content has another, later "
            "version"
        ),
    ),
    Invariant(
        id="leader-epoch-monotone",
        rules="E1",
        summary="A leader epoch went back, or has two leaders.",
        holds=(
            "leader epochs never go back, neither in ZooKeeper nor on a replica, and another "
            "leader has another epoch"
        ),
    ),
    Invariant(
        id="isr-within-replicas",
        rules="R14, KAFKA-5083",
        summary="An ISR is empty, lacks the leader, or has a broker without a replica.",
        holds="an ISR is not empty, contains the leader, and contains only assigned replicas",
    ),
    Invariant(
        id="placed-over-racks",
        rules="KIP-36",
        summary="The controller placed a partition's replicas in fewer racks than it could.",
        holds="where the controller places replicas, each is in a rack of its own, or all are used",
        suspended_under="brokers that come or go while the controller creates topics",
    ),
    Invariant(
        id="placed-as-asked",
        rules="KIP-455",
        summary="A partition is reassigned to other replicas than those that were asked for.",
        holds="the target of a reassignment has the replicas that were asked for, in that order",
        suspended_under="another reassignment of the partition that is asked for meanwhile",
    ),
    Invariant(
        id="moved-when-in-sync",
        rules="C12, KIP-455",
        summary="A reassignment gave replicas up before the others were in sync.",
        holds=(
            "when a reassignment completes, each replica that stays has been in the ISR since the "
            "reassignment began"
        ),
    ),
    Invariant(
        id="controller-epoch-monotone",
        rules="E2",
        summary="A controller epoch went back, or is not known to ZooKeeper.",
        holds=(
            "controller epochs never go back, and no broker or state has one that ZooKeeper has "
            "not assigned"
        ),
    ),
    Invariant(
        id="one-controller-per-epoch",
        rules="E2, KAFKA-6082",
        summary="Two brokers were controller in the same epoch.",
        holds="no two brokers are ever the controller of one epoch",
    ),
    Invariant(
        id="metadata-epoch-monotone",
        rules="E10, KAFKA-7738",
        summary="A broker returned a leader to clients that it knew to be replaced.",
        holds=(
            "without a restart, a broker never reports an earlier leader epoch to clients than "
            "before"
        ),
        suspended_under="topics that were ever deleted",
    ),
    *ZAB,
)
"""In the order of docs/anomalies.md."""

STUCK = "stuck"
"""The one violation that the checks of histories find, too, and report under the same name."""

VIOLATIONS = frozenset(invariant.id for invariant in INVARIANTS) | {STUCK}
"""The names that a violation may have."""
