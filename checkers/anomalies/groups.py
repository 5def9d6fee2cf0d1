"""Anomalies of consumer groups: committed offsets, and owners of partitions."""

from checkers.anomalies.anomaly import Anomaly
from checkers.anomalies.legality import begun_at_end, committed_alone, from_former_leader

ANOMALIES = (
    Anomaly(
        id="commit-regression",
        checker="commits",
        summary="A group's committed offset went back to an earlier one.",
        definition=(
            "a group fetched a committed offset that had certainly been overwritten or deleted "
            "before the fetch began; or it fetched an offset that was never committed, below the "
            "last committed one"
        ),
        allows=from_former_leader,
        legal_when=(
            "faults explain that a former coordinator answered from memory "
            "([below](#former-leaders))"
        ),
        counted_by="witnesses",
    ),
    Anomaly(
        id="lost-commit",
        checker="commits",
        summary="A group's committed offset is gone.",
        definition="a group fetched its offsets and found none committed, although one was",
        allows=from_former_leader,
        legal_when="as `commit-regression`",
        counted_by="witnesses",
    ),
    Anomaly(
        id="commit-mismatch",
        checker="commits",
        summary="An offset has other metadata than it was committed with.",
        definition=(
            "a group fetched an offset with other metadata than it was committed with, or with none"
        ),
        counted_by="witnesses",
    ),
    Anomaly(
        id="commit-ahead",
        checker="deliveries",
        summary="An offset is committed beyond all records that the group was given.",
        definition=(
            "a member committed an offset beyond every record that the group had received, so "
            "that no member will process a record that is certainly in the log; or the "
            "coordinator reports an offset as committed that no member committed"
        ),
        allows=committed_alone,
        legal_when=(
            "a client commits automatically (`enable.auto.commit`), and a later member of the "
            "group is assigned that offset to begin at"
        ),
        counted_by="witnesses",
    ),
    Anomaly(
        id="resume-gap",
        checker="deliveries",
        summary="A member began after the committed offset, and skipped records.",
        definition=(
            "a member that was assigned a partition began after the committed offset, or after the "
            "start of the log where nothing was committed, and skipped a record that is certainly "
            "there"
        ),
        allows=begun_at_end,
        legal_when=(
            "only where nothing was committed, with `auto.offset.reset=latest` in the plan, in "
            "`--set consumer.auto.offset.reset=latest` or among the options of a `subscribe`"
        ),
        counted_by="witnesses",
    ),
    Anomaly(
        id="resume-overlap",
        checker="deliveries",
        summary="A member began before the committed offset.",
        definition="a member that was assigned a partition began before the committed offset",
        counted_by="witnesses",
    ),
    Anomaly(
        id="double-owner",
        checker="owners",
        summary="Two members of a group owned one partition.",
        definition=(
            "one generation of a group assigned a partition to two members; or a commit was "
            "accepted from a member after its partition had been assigned to another, before it "
            "was notified of that. A group that has neither members nor committed offsets is "
            "deleted, and its generations begin with 1 again; so generations are compared only if "
            "commits show that the group did not end in between"
        ),
        counted_by="witnesses",
    ),
    Anomaly(
        id="subscribed-deletion",
        checker="owners",
        summary="A group's committed offset was deleted while a member owned the partition.",
        definition=(
            "a group's committed offset of a partition was deleted although a member owned the "
            "partition all the time: the partition had been assigned to that member before, and a "
            "commit of that member was accepted afterwards"
        ),
        counted_by="witnesses",
    ),
)
