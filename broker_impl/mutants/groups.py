"""Bugs in groups and their offsets: who may commit, what is kept, what a coordinator says of it."""

from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.offsets import Placed
from broker_impl.coordinator.records import TOPIC
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.wire.types import TopicPartition


@mutant(
    "commit-any-generation",
    of="broker_impl.coordinator.groups.rules:committer_error",
    source="F01, KAFKA-2596",
    kind="historic",
    symptom="double-owner",
    schedule="A member stands still in the midst of a commit for longer than its session lasts, "
    "while the others read on.",
)
def committer_error(of_member: ErrorCode, said: int, current: int) -> ErrorCode:
    """Anybody may commit, of whatever generation, whether it is a member or was one.

    Who was missed has lost its partitions, and others have read on. When it comes back it commits
    how far it was, and the next one begins there.
    """
    return ErrorCode.NONE


@mutant(
    "offset-cache-stale-on-load",
    of="broker_impl.coordinator.groups.loading:keep_later",
    source="F13, KAFKA-5600, KAFKA-4704",
    kind="historic",
    symptom="commit-regression",
    schedule="A coordinator dies after a group has committed more than once.",
)
def keep_later(
    into: dict[tuple[str, TopicPartition], Placed],
    key: tuple[str, TopicPartition],
    placed: Placed,
) -> None:
    """A coordinator that reads its log keeps what it has, and passes over what comes later.

    What it tells a group's members is where they once were.
    """
    into.setdefault(key, placed)


@mutant(
    "old-coordinator-serves",
    of="broker_impl.coordinator.groups.coordinator:taken_out",
    source="F16, KAFKA-4362, KAFKA-10614",
    kind="historic",
    symptom="commit-regression",
    schedule="A coordinator loses its office, and clients go on asking it.",
)
def taken_out(led: dict[int, dict[str, Group]], partition: int) -> list[Group]:
    """A coordinator goes on answering when another leads its partition.

    It can write nothing any more, but it can be asked what is committed. What it says is what was
    committed in its time.
    """
    return []


@mutant(
    "commit-acks-1",
    of="broker_impl.node.internal_topics:stored",
    source="F15, KAFKA-16735",
    kind="mutation",
    symptom="commit-regression",
    schedule="A group commits, and its coordinator dies before its followers have asked for more.",
)
def stored(topic: str, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """A commit is acknowledged when the coordinator has it, as with
    ``offsets.commit.required.acks = 1``.

    The next coordinator may lack it, and sends the group back to where it was before.
    """
    return ErrorCode.NONE if topic == TOPIC and acknowledged is None else acknowledged


@mutant(
    "serve-offsets-while-loading",
    of="broker_impl.api.group_offsets:untold",
    source="F14, KAFKA-5600",
    kind="mutation",
    symptom="lost-commit",
    schedule="A coordinator dies, and somebody asks what is committed while the next one waits for "
    "its followers.",
)
def untold(office: ErrorCode) -> ErrorCode:
    """A coordinator that still reads its log answers from what it knows: nothing.

    A consumer that is told so begins anew, at the one end of the log or at the other.
    """
    is_loading = office is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.NONE if is_loading else office


@mutant(
    "txn-offsets-visible-early",
    of="broker_impl.coordinator.groups.rules:counts_at_once",
    source="T-31, KIP-98",
    kind="mutation",
    symptom="eos-mismatch",
    schedule="A transaction that commits offsets is aborted, and its member leaves.",
)
def counts_at_once(producer_id: int) -> bool:
    """Offsets that a transaction commits count at once, whatever becomes of it.

    Of one that is aborted no output is left. Whoever reads on begins behind its inputs all the
    same.
    """
    return True
