"""Bugs of brokers with several data directories (KIP-112, KIP-113)."""

from broker_impl.log.move_rules import Fate
from broker_impl.mutants import mutant
from broker_impl.wire.types import Offset


@mutant(
    "move-replaces-early",
    of="broker_impl.log.move_rules:may_replace",
    source="KIP-113",
    kind="mutation",
    symptom="crash",
    schedule="Replicas move to other data directories while clients write to them.",
)
def may_replace(copy_end: Offset, end: Offset) -> bool:
    """A copy replaces the current log as soon as it has any records.

    All records that it lacks are gone. This broker checks its own state after every event, and
    exits because the log ends before the high watermark.
    """
    return copy_end > 0


@mutant(
    "move-keeps-truncated",
    of="broker_impl.log.move_rules:cut_of_copy",
    source="KIP-113",
    kind="mutation",
    symptom="invariant:log-matching",
    schedule="A leader is cut off from its followers while its replica moves slowly, and returns "
    "as a follower.",
    tier=2,
    is_planned=False,
)
def cut_of_copy(offset: Offset, copy_end: Offset) -> Offset | None:
    """A truncation of the current log is not applied to its copy.

    The copy keeps records that no other replica has. It goes on at its own end, where the current
    log has others by then, and replaces it.
    """
    return None


@mutant(
    "move-forgets-start",
    of="broker_impl.log.move_rules:start_after",
    source="KIP-107, KIP-113",
    kind="mutation",
    symptom="invariant:log-start-monotone",
    schedule="A replica moves to another data directory after some of its records were deleted.",
)
def start_after(start: Offset, first_stored: Offset) -> Offset:
    """A log that has moved starts where its first segment begins.

    Deleted records of this segment were copied with it, because segments are copied whole. They
    can be read again, at this replica alone.
    """
    return first_stored


@mutant(
    "move-forgotten-in-crash",
    of="broker_impl.log.move_rules:fate",
    source="KIP-113",
    kind="mutation",
    symptom="lost-write",
    schedule="A broker loses power after it has renamed a log that moves, and before it renames "
    "the copy.",
    tier=2,
)
def fate(*, has_current: bool, is_complete: bool) -> Fate:
    """A copy without a current log is always discarded when a broker starts.

    Between the two renames at the end of a move, the complete copy is the only log of the replica.
    """
    return Fate.STARTED_OVER if has_current else Fate.DISCARDED


@mutant(
    "lost-log-begun-again",
    of="broker_impl.replica.controller_orders:may_create",
    source="KIP-112",
    kind="mutation",
    symptom="invariant:leader-completeness",
    schedule="A broker starts again while the data directory with the only replica of a partition "
    "fails.",
)
def may_create(*, is_new: bool, any_failed: bool) -> bool:
    """A replica whose log may be in a failed data directory begins with an empty log elsewhere.

    The controller counts on the records that the replica had before, and lets it lead.
    """
    return True
