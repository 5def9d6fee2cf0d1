"""What coordinators return of offsets is compared with the commits that they have received."""

from types import SimpleNamespace
from typing import Any

from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.records import Committed
from broker_impl.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker_impl.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from broker_impl.wire.types import TopicPartition
from checkers.invariants.fetched_offsets import Commits
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_fetches import FetchWitness

X0 = [OffsetFetchRequestTopic("x", [0])]
X0_OF_GROUP = [OffsetFetchRequestTopics("x", [0])]


class Coordinator:
    """A broker that coordinates the group g, with an offset for x-0."""

    def __init__(self) -> None:
        self.group: Any = Group("g", GroupConfig(), lambda: 1, 0)
        self.group.offsets.place(0, {TopicPartition("x", 0): Committed(7, 3, "m", 0)})
        self.found: list[str] = []
        self.security: Any = SimpleNamespace(authorizer=None)
        broker: Any = SimpleNamespace(
            groups=SimpleNamespace(find=lambda name: self.group), security=self.security
        )
        self.witness = FetchWitness(
            Reporter(1, lambda: 0, lambda violation: self.found.append(violation.invariant)),
            broker,
            Commits(),
        )
        row = OffsetCommitRequestPartition(0, 7, 3, committed_metadata="m")
        request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("x", [row])])
        assert self.witness(request) is None

    def answer(self, request: OffsetFetchRequest, *groups: tuple[str, list[Any]]) -> list[str]:
        """Answer with the topics of each group; return the violations."""
        self.found.clear()
        on_answer = self.witness(request)
        assert on_answer is not None
        rows = [SimpleNamespace(group_id=name, topics=each, error_code=0) for name, each in groups]
        on_answer(SimpleNamespace(error_code=0, topics=groups[0][1], groups=rows))
        return list(self.found)


def topics(offset: int, epoch: int = 3, code: int = 0) -> list[Any]:
    row = SimpleNamespace(
        partition_index=0,
        error_code=code,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        metadata="m",
    )
    return [SimpleNamespace(name="x", partitions=[row])]


def test_an_offset_is_returned_as_it_was_committed() -> None:
    """No offset and an error are right answers; another leader epoch is none."""
    coordinator = Coordinator()
    request = OffsetFetchRequest("g", topics=X0)
    assert coordinator.answer(request, ("g", topics(7))) == []
    assert coordinator.answer(request, ("g", topics(-1, -1))) == []
    assert coordinator.answer(request, ("g", topics(8, code=16))) == []
    assert coordinator.answer(request, ("g", topics(7, -1))) == ["fetched-as-committed"]
    assert coordinator.answer(request, ("g", topics(8))) == ["fetched-as-committed"]


def test_all_partitions_are_returned_if_all_are_asked_for() -> None:
    """An empty answer is right only if the group has no offset, or no partition was asked for."""
    coordinator = Coordinator()
    everything = OffsetFetchRequest("g", topics=None)
    assert coordinator.answer(everything, ("g", topics(7))) == []
    assert coordinator.answer(everything, ("g", [])) == ["fetched-as-committed"]
    assert coordinator.answer(OffsetFetchRequest("g", topics=[]), ("g", [])) == []
    coordinator.security.authorizer = object()
    assert coordinator.answer(everything, ("g", [])) == [], "the client may not see the topic"
    coordinator.group = None
    assert coordinator.answer(everything, ("g", [])) == []


def test_each_group_of_a_request_has_its_own_offsets() -> None:
    """The offsets of one group are wrong for another one (KIP-709)."""
    coordinator = Coordinator()
    asked = [OffsetFetchRequestGroup("g", None), OffsetFetchRequestGroup("h", X0_OF_GROUP)]
    request = OffsetFetchRequest(groups=asked)
    assert coordinator.answer(request, ("g", topics(7)), ("h", [])) == []
    assert coordinator.answer(request, ("h", []), ("g", topics(7))) == [], "in any order"
    wrong = coordinator.answer(request, ("g", topics(7)), ("h", topics(7)))
    assert wrong == ["fetched-as-committed"]
