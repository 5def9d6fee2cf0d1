"""The stories: a bug, its plan, the release that has it, the release that fixed it, and our mutant.

A story's plan file is the same for all of its systems.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.systems.catalogue import OURS

Part = Literal["old", "new", "mutant", "ours"]
"""What a plan runs on: the release with the bug, the one without it, this project's broker with the
planted bug (or with the protocol that has it), and this project's broker without."""
PARTS: tuple[Part, ...] = ("old", "new", "mutant", "ours")
FAULTY: tuple[Part, ...] = ("old", "mutant")
"""The parts that must be convicted; the others must be acquitted."""


class Place(NamedTuple):
    """One of the four systems on which a story's plan runs."""

    part: Part
    system: str
    mutants: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    """What ``--set`` sets."""

    @property
    def is_ours(self) -> bool:
        """True for this project's broker."""
        return self.system == OURS

    @property
    def has_bug(self) -> bool:
        """True if the plan must show the anomaly here."""
        return self.part in FAULTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A historic bug."""

    name: str
    """Its plan is ``examples/historic/NAME.toml``."""
    title: str
    jira: tuple[str, ...]
    kip: str | None
    text: str
    """What went wrong and what was changed, in a paragraph."""
    old: str
    """The release that has the bug."""
    new: str
    """The release that does not."""
    mutants: tuple[str, ...]
    """The bugs to plant in this project's broker; none if its protocol has the bug."""
    anomalies: tuple[str, ...]
    """As which it must be reported: one of these, and on every system the same ones are looked
    for."""
    settings: tuple[str, ...] = ()
    """What the plan leaves to the system, and its releases need (``--set``)."""

    @property
    def plan(self) -> str:
        """The path of its plan file in the repository."""
        return f"examples/historic/{self.name}.toml"

    @property
    def places(self) -> Iterator[Place]:
        """The systems on which the plan runs, in the order of the page."""
        yield Place("old", f"apache-kafka:{self.old}", settings=self.settings)
        yield Place("new", f"apache-kafka:{self.new}", settings=self.settings)
        yield Place("mutant", OURS, self.mutants)
        if self.mutants:
            yield Place("ours", OURS)


_STORIES = (
    Story(
        name="kip-101-loss",
        title="Followers truncate their logs to their own high watermark",
        jira=("KAFKA-1211",),
        kip="KIP-101",
        text=(
            "A follower learned which records are committed one fetch later than the leader. When a"
            " new leader was elected, every follower truncated its log to its own high watermark,"
            " and relied on the new leader to send the rest again. If the new leader died before it"
            " had done so, the follower became the leader, because it was still in the ISR, and"
            " acknowledged records were gone. Since 0.11 batches carry the epoch of their leader,"
            " and a follower asks the new leader where the last epoch that both know ends."
        ),
        old="0.10.2.2",
        new="0.11.0.3",
        mutants=("truncate-to-hw-loss",),
        anomalies=("lost-write",),
    ),
    Story(
        name="kip-101-divergence",
        title="Two replicas in sync have different records at one offset",
        jira=("KAFKA-1211",),
        kip="KIP-101",
        text=(
            "The same truncation to the own high watermark, with another outcome. A leader that was"
            " cut off keeps the records that it knows to be committed. Meanwhile another replica"
            " has truncated them, leads, and appends others at their offsets. The former leader"
            " becomes its follower, and both logs are compared by their lengths alone: it fetches"
            " behind the records that differ, joins the ISR, and readers get other records once it"
            " leads."
        ),
        old="0.10.2.2",
        new="0.11.0.3",
        mutants=("truncate-to-hw-diverge",),
        anomalies=("lost-write", "inconsistent-offsets"),
    ),
    Story(
        name="kip-279",
        title="A leader says where an epoch ends, but not which epoch",
        jira=("KAFKA-6361",),
        kip="KIP-279",
        text=(
            "After two elections within a short time, the last epoch in a follower's log may be one"
            " that the new leader has never seen. The leader answered with the end of the epoch"
            " before it, but the response did not name that epoch. The follower took the answer for"
            " the end of its own last epoch, and kept records where the leader has others. Since"
            " 2.0 the response names the epoch, and the follower asks again for an epoch that it"
            " has in common with the leader."
        ),
        old="1.1.1",
        new="2.0.1",
        mutants=("fast-failover-no-epoch-in-reply",),
        anomalies=("lost-write", "inconsistent-offsets"),
    ),
    Story(
        name="kip-320",
        title="A follower that missed an election is counted as in sync",
        jira=("KAFKA-7395",),
        kip="KIP-320",
        text=(
            "A fetch did not say in which leader epoch it was meant. A follower that missed two"
            " elections, and with them the truncation of its leader's log, went on fetching behind"
            " records that the leader no longer had. The leader counted these fetches as the"
            " follower's position in its own log, acknowledged records that the follower never"
            " received, and the follower could be elected. Since 2.1 a fetch carries the leader"
            " epoch, and a leader of another epoch refuses it."
        ),
        old="2.0.1",
        new="2.1.1",
        mutants=("epochs-by-question", "fetch-epoch-unfenced"),
        anomalies=("lost-write", "inconsistent-offsets"),
    ),
    Story(
        name="kafka-7164",
        title="A follower keeps its log when it has missed that its leader was replaced",
        jira=("KAFKA-7164",),
        kip=None,
        text=(
            "A follower that becomes a follower of the same leader as before did nothing, also if"
            " the leader epoch had advanced by more than one. In between another replica may have"
            " led, and the leader may have truncated its log to that replica's. The follower kept"
            " the records that its leader had truncated, and fetched behind them. Since 2.0.1 the"
            " step is skipped only if no epoch was missed."
        ),
        old="2.0.0",
        new="2.0.1",
        mutants=("epochs-by-question", "skip-follower-step-same-leader"),
        anomalies=("lost-write", "inconsistent-offsets"),
    ),
    Story(
        name="kafka-7128",
        title="A follower joins the ISR by a high watermark that is too old",
        jira=("KAFKA-7128",),
        kip=None,
        text=(
            "A follower was added to the ISR when it had reached the high watermark of its leader."
            " A new leader may not know how much its predecessor had committed: its high watermark"
            " is old until all replicas in sync have fetched from it. A follower that lacked"
            " committed records could join the ISR in that time, and be elected. Since 2.0.1 it"
            " must also have reached the offset at which the leader's epoch begins."
        ),
        old="2.0.0",
        new="2.0.1",
        mutants=("epochs-by-question", "joins-isr-by-stale-hw"),
        anomalies=("lost-write",),
    ),
    Story(
        name="kafka-2729",
        title="An ISR never changes again after a controller has lost its session",
        jira=("KAFKA-2729",),
        kip=None,
        text=(
            "A leader writes a partition's ISR to ZooKeeper with the version of the znode that it"
            " knows. If the version differs, it skips the write, because the controller must have"
            " written and will send the new version. A controller whose session had expired while"
            " it was busy went on writing in its client's next session, and brokers rejected its"
            " requests, because they knew the next controller. So leaders never got these versions:"
            " their ISRs stayed as they were until another election or a restart. Since 1.1 a"
            " controller resigns before its client opens another session."
        ),
        old="0.11.0.3",
        new="1.1.1",
        mutants=("isr-cas-never-refreshed",),
        anomalies=("stuck",),
    ),
    Story(
        name="kafka-14946",
        title="A controller of KRaft shuts itself down when another one is elected",
        jira=("KAFKA-14946",),
        kip=None,
        text=(
            "A controller that is cut off from the others continues to accept changes, and cannot"
            " commit them. When it learns of its successor, it reverts them. If a topic was created"
            " among them and, after that, a partition of another topic changed, reverting met a"
            " NullPointerException: the controller shut itself down, and hung in the middle of it."
            " Its process ran on and answered nothing, until an operator killed it. Fixed in 3.4.1."
            " Our broker, which has no KRaft, has a similar planted bug: its controller ends with"
            " an error if a request waits when its session is over."
        ),
        old="3.4.0",
        new="3.4.1",
        mutants=("resigns-only-when-idle",),
        anomalies=("unresponsive", "crash"),
        settings=("options.coordination=kraft-separate",),
    ),
    Story(
        name="kip-890",
        title="A transaction that was aborted is open again when a late batch arrives",
        jira=("KAFKA-14402",),
        kip="KIP-890",
        text=(
            "A producer may abort a transaction while one of its batches is still on its way. A"
            " leader that received the batch after the marker of the abort took it for the first"
            " one of another transaction of the same producer. No coordinator knew of that"
            " transaction, so nothing ended it: no read_committed consumer could read on, however"
            " many other transactions were committed after it. Since 3.6 a leader asks the"
            " coordinator whether a transaction is open before it appends the first batch. The plan"
            " uses the client `raw`, which aborts with the same epoch at once, as clients may."
            " librdkafka requests another epoch before (KIP-360), which fences the late batch."
        ),
        old="2.8.2",
        new="3.9.1",
        mutants=("late-produce-hangs",),
        anomalies=("stuck-lso",),
    ),
    Story(
        name="kafka-5600",
        title="A coordinator reads the first part of its log, and ignores the rest",
        jira=("KAFKA-5600",),
        kip=None,
        text=(
            "A group coordinator reads its partition of `__consumer_offsets` in parts, each as"
            " large as a buffer, by default 5 MiB. After each part, the coordinator of 0.11.0.0"
            " added the groups that it had found to its cache, and dropped what later parts had of"
            " a group that was there already. After a failover, clients got committed offsets that"
            " had been replaced long ago, and would have consumed the records after them again."
            " Since 0.11.0.1 groups are added when the whole log has been read."
        ),
        old="0.11.0.0",
        new="0.11.0.3",
        mutants=("offset-cache-stale-on-load",),
        anomalies=("commit-regression",),
    ),
    Story(
        name="kafka-6119",
        title="A transaction that has timed out is committed without its first records",
        jira=("KAFKA-6119",),
        kip=None,
        text=(
            "A coordinator aborts a transaction that is open for longer than its timeout. Before"
            " 0.11.0.2 it did so with the producer's current epoch, which does not fence a producer"
            " that is only slow. The producer's next request to add a partition began another"
            " transaction, and its commit committed only what it had sent since then, and was"
            " acknowledged: the records from before the abort were lost. Now the coordinator aborts"
            " with the next epoch, and the slow producer is fenced. The plan has no faults, only"
            " producers that pause."
        ),
        old="0.11.0.0",
        new="0.11.0.3",
        mutants=("timeout-abort-no-bump",),
        anomalies=("torn-transaction",),
    ),
    Story(
        name="kafka-17754",
        title="A commit or abort that arrives late ends the producer's next transaction",
        jira=("KAFKA-17754",),
        kip="KIP-890",
        text=(
            "In version 1 of the transaction protocol all transactions of a producer have one"
            " epoch, and an EndTxn request does not say which of them it ends. If one was delayed,"
            " and the producer got no response and asked again, the delayed request ended the"
            " producer's next transaction in the middle: aborted records became visible, or"
            " committed ones were lost. With version 2, which clusters of 4.0 and newer use, each"
            " transaction has an epoch of its own. The plan uses the client `raw`, which implements"
            " both versions. This project's broker implements version 1, as Kafka 2.8 does."
        ),
        old="3.9.1",
        new="4.1.0",
        mutants=(),
        anomalies=("torn-transaction", "G1a", "lost-write"),
    ),
)
STORIES: Mapping[str, Story] = {story.name: story for story in _STORIES}
