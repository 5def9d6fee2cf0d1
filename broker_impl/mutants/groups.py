"""Bugs in groups: who is a member of which generation, who may commit, who is the coordinator."""

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
    "reply-before-persist",
    of="broker_impl.node.internal_topics:stored",
    source="F04, KAFKA-2017",
    kind="historic",
    symptom="double-owner",
    schedule="A coordinator's log is not replicated any more, its group rebalances, and the "
    "coordinator dies.",
)
def stored(topic: str, key: bytes, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """Members are told what they are assigned when the coordinator alone has it.

    The next coordinator does not know of that generation. It knows none of those who joined since,
    and gives out the same generation anew: two members have the same partition in it.
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
    """A rebalance goes on with the generation that there was.

    Who was left out, or has not heard of it, cannot be told from those who were there: to commit,
    it is enough to have been a member since.
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
    """A coordinator that takes over reads what a group has committed, and not who is in it.

    All have to join again, and generations are counted anew: one that was left long ago, and whose
    commits were refused since, becomes the one of now.
    """


@mutant(
    "delete-offsets-of-subscribed",
    of="broker_impl.coordinator.groups.rules:is_subscribed",
    source="F19, KAFKA-8954",
    kind="historic",
    symptom="subscribed-deletion",
    schedule="Offsets of a group are deleted while its members read on, and then it rebalances.",
    tier=2,
)
def is_subscribed(subscribed: frozenset[str] | None, topic: str) -> bool:
    """Offsets are deleted of whatever topic, though members of the group read it.

    They read on, and know nothing. Whoever is given the partition next begins anew, at the one end
    of the log or at the other.
    """
    return False
