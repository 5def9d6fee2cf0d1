"""Bugs in groups and their offsets: who may commit, what is kept, what a coordinator says of it."""

from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.offsets import Placed
from broker_impl.mutants import mutant
from broker_impl.wire.types import TopicPartition


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
