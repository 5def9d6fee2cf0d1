"""Batches for the topics of an asking process, sent to a client that keeps the requests."""

from types import SimpleNamespace
from typing import Any

from workloads.client.asking.own_topics import WRITE_MS, append
from workloads.client.asking.requests import Place


class Client:
    """A client whose leader of a partition is the broker with ten times its number."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []
        self.cluster = SimpleNamespace(leader_for_partition=lambda each: each.partition * 10)

    async def _wait_on_metadata(self, topic: str) -> None:
        return None

    async def send(self, node: int, request: Any) -> Any:
        self.sent.append((node, request))
        return SimpleNamespace(topics=[("t", [(2, 0, 17), (3, 6, -1)])])


async def test_batches_of_several_partitions_go_to_one_leader_in_one_request() -> None:
    """The error of each batch is returned, whatever else the answer has."""
    client: Any = Client()
    codes = await append(client, Place("t", 2), {2: b"x", 3: b"y"}, transactional_id="a")
    assert codes == [0, 6]
    [(leader, request)] = client.sent
    assert leader == 20
    assert vars(request) == {
        "_transactional_id": "a",
        "_required_acks": -1,
        "_timeout": WRITE_MS,
        "_topics": [("t", [(2, b"x"), (3, b"y")])],
    }
