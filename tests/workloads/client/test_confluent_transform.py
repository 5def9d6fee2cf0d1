"""Group members that work in transactions, by librdkafka, without a cluster."""

from typing import Any

import pytest

from model.op import MicroOp
from workloads.client.confluent_transform import TransformingMember, _Named, _Polls
from workloads.client.transaction import Failure

ASSIGNED: MicroOp = ["assigned", "g", None, {"a-0": None}]
REVOKED: MicroOp = ["revoked", "g", None, ["a-0"]]


class Member:
    """A member whose polls return these events."""

    def __init__(self, *told: list[MicroOp], identity: Any = "me") -> None:
        self.told = list(told)
        self.identity = identity

    async def poll(self) -> tuple[list[MicroOp], str | None]:
        return self.told.pop(0), None


async def test_rebalances_stand_in_front_of_their_polls() -> None:
    """Rebalances precede their polls; a transaction without records before them continues."""
    records = {"a-0": [[0, 7]]}
    polls: Any = _Polls(Member([["poll", {}]], [REVOKED, ASSIGNED, ["poll", records]]))  # type: ignore[arg-type]
    assert await polls.poll() == ({}, None)
    assert await polls.poll() == (records, None)
    row = [["poll", {}], ["send", "a-0", 1], ["poll", records], ["commit", "g", {"a-0": 1}]]
    assert polls.among(row) == [*row[:2], REVOKED, ASSIGNED, *row[2:]]


async def test_what_was_read_before_a_rebalance_is_not_committed_after_it() -> None:
    """Records read before a rebalance are not committed after it: no broker would reject that."""
    polls = _Polls(Member([["poll", {"a-0": [[0, 7]]}]], [REVOKED, ["poll", {}]]))  # type: ignore[arg-type]
    assert await polls.poll() == ({"a-0": [[0, 7]]}, None)
    assert await polls.poll() == ({}, "RebalanceInProgress")


async def test_who_was_never_assigned_anything_commits_nothing() -> None:
    """A member that was never assigned anything commits nothing, because it has no member id."""

    class Producer:
        begin = send = commit = abort = None
        said: Any = None

        async def send_offsets(self, offsets: Any, identity: Any) -> None:
            self.said = offsets, identity

    producer: Any = Producer()
    with pytest.raises(Failure, match="NotAssigned"):
        await _Named(producer, Member(identity=None)).send_offsets({"a-0": 1}, "g")  # type: ignore[arg-type]
    await _Named(producer, Member()).send_offsets({"a-0": 1}, "g")  # type: ignore[arg-type]
    assert producer.said == ({"a-0": 1}, "me")


@pytest.mark.parametrize(("protocol", "then"), [("consumer", "epoch 2"), ("classic", "epoch 1")])
async def test_the_epoch_of_a_commit_is_that_of_the_last_poll(protocol: str, then: str) -> None:
    """With KIP-848 the epoch advances without an assignment; a generation does not."""

    class Consumer:
        epoch = 1

        def consumer_group_metadata(self) -> str:
            return f"epoch {self.epoch}"

        def poll(self, _: float) -> None:
            self.epoch = 3  # the coordinator has moved on while the member polls

    consumer, producer = Consumer(), object()
    config = {"bootstrap.servers": "127.0.0.1:1", "group.protocol": protocol}
    how = {"instance": None, "assignor": "range", "commit": "sync"}
    member = TransformingMember(config, "g", how, producer)  # type: ignore[arg-type]
    member._consumer.close()
    member._consumer = consumer  # type: ignore[assignment]
    assert (member._poll(), member.identity) == (([["poll", {}]], None), None)
    consumer.epoch = 1
    member._assigned(["a-0"])
    member._feed.take()
    consumer.epoch = 2
    member._poll()
    assert member.identity == then
