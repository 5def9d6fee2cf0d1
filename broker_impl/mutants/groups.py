"""Bugs in consumer groups: members, generations, commits and coordinators."""

from broker_impl.coordinator import records
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.records import TOPIC, GroupRecord
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant


@mutant(
    "commit-any-generation",
    of="broker_impl.coordinator.groups.rules:committer_error",
    source="F01, KAFKA-2596",
    kind="historic",
    symptom="double-owner",
    schedule="A member pauses in the middle of a commit for longer than its session timeout, "
    "while the other members keep reading.",
)
def committer_error(of_member: ErrorCode, said: int, current: int) -> ErrorCode:
    """Any process may commit, whatever its generation, whether or not it is a member.

    A member whose session expired has lost its partitions, and others have read on. When it comes
    back it commits its own, older position, and the next owner starts from there.
    """
    return ErrorCode.NONE


@mutant(
    "old-coordinator-serves",
    of="broker_impl.coordinator.groups.coordinator:taken_out",
    source="F16, KAFKA-4362, KAFKA-10614",
    kind="historic",
    symptom="commit-regression",
    schedule="A coordinator is replaced, and clients keep sending requests to it.",
)
def taken_out(led: dict[int, dict[str, Group]], partition: int) -> list[Group]:
    """A coordinator keeps answering after another broker has become leader of its partition.

    It can no longer write, but it still answers what is committed: the offsets that were committed
    while it was the coordinator.
    """
    return []


@mutant(
    "reply-before-persist",
    of="broker_impl.node.coordinators.internal_topics:stored",
    source="F04, KAFKA-2017",
    kind="historic",
    symptom="double-owner",
    schedule="The log of a coordinator is no longer replicated, its group rebalances, and the "
    "coordinator dies.",
)
def stored(topic: str, key: bytes, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """Members get their assignments as soon as the coordinator alone has stored them.

    The next coordinator does not know that generation. It knows none of the members that have
    joined since, and assigns the same generation number again: two members own the same partition
    in it.
    """
    is_of_group = topic == TOPIC and isinstance(records.decode_key(key), records.GroupKey)
    return ErrorCode.NONE if is_of_group and acknowledged is None else acknowledged


@mutant(
    "generation-kept",
    of="broker_impl.coordinator.groups.rules:next_generation",
    source="G1, G4",
    kind="mutation",
    symptom="double-owner",
    schedule="A group rebalances.",
)
def next_generation(current: int) -> int:
    """A rebalance keeps the current generation number.

    A member that missed a rebalance cannot be distinguished from those that took part: its commits
    are accepted as long as the group knows its member id.
    """
    return max(current, 1)


@mutant(
    "group-forgotten-on-load",
    of="broker_impl.coordinator.groups.coordinator:restore",
    source="G4, G5",
    kind="mutation",
    symptom="double-owner",
    schedule="A coordinator dies after its group has rebalanced more than once.",
)
def restore(group: Group, record: GroupRecord | None, now: float) -> None:
    """A coordinator that takes over loads a group's committed offsets, but not its members.

    All members must join again, and generation numbers start over: a generation that ended long
    ago, and whose commits have been rejected since, becomes the current one.
    """


@mutant(
    "delete-offsets-of-subscribed",
    of="broker_impl.coordinator.groups.rules:is_subscribed",
    source="F19, KAFKA-8954",
    kind="historic",
    symptom="subscribed-deletion",
    schedule="Offsets of a group are deleted while its members keep reading, and then the group "
    "rebalances.",
    tier=2,
)
def is_subscribed(subscribed: frozenset[str] | None, topic: str) -> bool:
    """Offsets are deleted for any topic, although members of the group are subscribed to it.

    The members read on and do not notice. The next owner of the partition starts from the beginning
    or the end of the log.
    """
    return False


@mutant(
    "group-tombstone-ignored",
    of="broker_impl.coordinator.groups.loading:end",
    source="KIP-229",
    kind="mutation",
    symptom="invariant:members-as-stored",
    schedule="A group is deleted, and then another broker becomes its coordinator.",
)
def end(groups: dict[str, GroupRecord], group: str) -> None:
    """A coordinator that reads its log ignores tombstones of groups.

    A deleted group is listed again, until compaction removes its record.
    """
