"""Transactions in topics that are deleted, with made up answers."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from workloads.client import aio_admin
from workloads.client.asking.deleted_topics import DeletedTopics
from workloads.client.asking.own_topics import Administrator
from workloads.client.asking.requests import Place

PLACE = Place("t", 0)


class Client:
    """A client whose requests succeed, but for those in ``refused``."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.refused: dict[str, int] = {}
        self.cluster = SimpleNamespace(leader_for_partition=lambda partition: 1)

    async def coordinator_lookup(self, kind: int, name: str) -> int:
        return 1

    async def _wait_on_metadata(self, topic: str) -> None:
        return None

    async def send(self, node: int, request: Any, group: Any = None) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.sent.append(name)
        code = self.refused.get(name, 0)
        rows = [("t", [(0, code)])]
        return SimpleNamespace(
            error_code=code, producer_id=7, producer_epoch=0, errors=rows, topics=rows
        )


def asking(
    client: Any, monkeypatch: pytest.MonkeyPatch, created: str = "ok", seed: int = 1
) -> DeletedTopics:
    """Return the producer of a process, whose topics are created with this outcome."""

    async def create(common: Any, new: Any) -> tuple[str, str | None]:
        client.sent.append(f"create {new.name}")
        return created, None if created == "ok" else "Lost"

    async def delete_topic(common: Any, name: str) -> tuple[str, None]:
        client.sent.append(f"delete {name}")
        return "ok", None

    monkeypatch.setattr(aio_admin, "create", create)
    monkeypatch.setattr(aio_admin, "delete_topic", delete_topic)
    return DeletedTopics(client, random.Random(seed), "g", Administrator({}, 1))


@pytest.mark.parametrize("seed", range(6))
async def test_a_topic_is_deleted_while_a_transaction_has_records_in_it(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The transaction ends after the deletion, or meanwhile; the next one has another topic."""
    client = Client()
    topics = asking(client, monkeypatch, seed=seed)
    await topics.ask(PLACE, 1, [1])
    begun = ["create g-0", "Init", "AddPartitionsToTxn", "Produce"]
    assert client.sent[:4] == begun
    assert sorted(client.sent[4:]) == ["EndTxn", "delete g-0"]
    await topics.ask(PLACE, 1, [1])
    assert client.sent[6] == "create g-1"


async def test_a_topic_stays_until_a_transaction_was_begun_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A refusal ends the story, and the next one uses the topic."""
    client = Client()
    client.refused = {"AddPartitionsToTxn": 3}
    topics = asking(client, monkeypatch)
    said = await topics.ask(PLACE, 1, [1])
    assert said == "create g-0: NoError, init 0: NoError, add: UnknownTopicOrPartitionError"
    client.refused = {}
    await topics.ask(PLACE, 1, [1])
    assert [each for each in client.sent if each.startswith("create")] == ["create g-0"]


@pytest.mark.parametrize(("created", "after"), [("fail", "create g-0"), ("info", "create g-1")])
async def test_a_topic_that_may_exist_is_not_created_again(
    monkeypatch: pytest.MonkeyPatch, created: str, after: str
) -> None:
    """After a creation in doubt the next story uses another name."""
    client = Client()
    topics = asking(client, monkeypatch, created)
    for _ in range(2):
        assert (await topics.ask(PLACE, 1, [1])).endswith("Lost")
    assert client.sent == ["create g-0", after]
