"""What is asked about deleted groups, and topics that are created again, with made up answers."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from workloads.client import aio_admin
from workloads.client.asking import deleted_groups, topics
from workloads.client.asking.deleted_groups import DeletedGroups
from workloads.client.asking.group_offsets import GroupOffsets
from workloads.client.asking.own_topics import Administrator
from workloads.client.asking.requests import Place
from workloads.client.asking.topics import Topics

PLACE = Place("t", 0)


class Client:
    """A client whose requests are answered from a dictionary of committed offsets."""

    def __init__(self) -> None:
        self.committed: dict[str, int] = {}
        self.refused = 0
        """The error code of deletions."""

    async def coordinator_lookup(self, kind: int, group: str) -> int:
        return 1

    async def send(self, node: int, request: Any, group: Any = None) -> Any:
        fields = vars(request)
        name = fields.get("_group", "")
        match type(request).__name__:
            case "CommitRequest":
                [(topic, [(partition, offset, *_)])] = fields["_topics"]
                self.committed[fields["_membership"].group] = offset
                return SimpleNamespace(topics=[(topic, [(partition, 0)])])
            case "OffsetsRequest":
                row: tuple[Any, ...] = (0, self.committed.get(name, -1), -1, "", 0, {})
                return SimpleNamespace(error_code=0, topics=[("t", [row], {})])
            case _:
                [name] = fields["_group_names"]
                if not self.refused:
                    self.committed.pop(name, None)
                return SimpleNamespace(results=[(name, self.refused)])


def groups(client: Any, seed: int = 1) -> DeletedGroups:
    """Return the groups of a process."""
    return DeletedGroups(client, random.Random(seed), "g")


async def test_offsets_are_requested_after_the_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and in later rounds."""
    monkeypatch.setattr(deleted_groups, "AGAIN_P", 0.0)
    monkeypatch.setattr(deleted_groups, "NEW_P", 0.0)
    asking = groups(Client())
    first = await asking.ask(PLACE, 1, [1])
    assert first == "commit g-0 1: NoError, delete g-0: NoError, read g-0 -1: NoError"
    assert await asking.ask(PLACE, 1, [1]) == "read g-0 -1: NoError"


async def test_each_commit_has_an_offset_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that commits again is another round's subject, too."""
    monkeypatch.setattr(deleted_groups, "AGAIN_P", 1.0)
    monkeypatch.setattr(deleted_groups, "NEW_P", 1.0)
    asking = groups(Client())
    said = [await asking.ask(PLACE, 1, [1]) for _ in range(2)]
    assert said[0].endswith("commit g-0 2: NoError, read g-0 2: NoError")
    assert said[1].startswith("commit g-1 3: NoError")


async def test_only_the_last_groups_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of any length asks about a limited number of groups."""
    monkeypatch.setattr(deleted_groups, "NEW_P", 1.0)
    asking = groups(Client())
    for _ in range(20):
        await asking.ask(PLACE, 1, [1])
    assert len(asking._kept) == deleted_groups.KEPT
    assert asking._kept[-1].group == "g-19"


async def test_a_group_whose_deletion_was_refused_is_not_kept() -> None:
    """Its offset may be returned."""
    client = Client()
    client.refused = 68
    asking = groups(client)
    assert (await asking.ask(PLACE, 1, [1])).endswith("delete g-0: NonEmptyGroup")
    assert asking._kept == []


@pytest.mark.parametrize(
    ("again", "deleted", "names"),
    [(1.0, "ok", ["a-0", "a-0"]), (1.0, "info", ["a-0", "a-1"]), (0.0, "ok", ["a-0", "a-1"])],
)
async def test_a_deleted_topic_may_be_created_again(
    monkeypatch: pytest.MonkeyPatch, again: float, deleted: str, names: list[str]
) -> None:
    """Only after an acknowledged deletion; the offset for the former topic is requested then."""
    created: list[str] = []

    async def create(common: Any, new: Any) -> tuple[str, None]:
        created.append(new.name)
        return "ok", None

    async def delete_topic(common: Any, name: str) -> tuple[str, None]:
        return deleted, None

    monkeypatch.setattr(aio_admin, "create", create)
    monkeypatch.setattr(aio_admin, "delete_topic", delete_topic)
    monkeypatch.setattr(topics, "AGAIN_P", again)
    client: Any = Client()
    asking = Topics(client, random.Random(1), "a", Administrator({}, 1))
    await asking.ask(PLACE, 1, [1])
    assert "delete a-0: NoError" in await asking._delete("a-0")
    said = await asking.ask(PLACE, 1, [1])
    assert created == names
    assert ("read a-0-reader 1: NoError" in said) == (names == ["a-0", "a-0"])


async def test_an_error_of_the_coordinator_is_an_answer() -> None:
    """It is returned in place of the offset."""

    class Refusing(Client):
        async def send(self, node: int, request: Any, group: Any = None) -> Any:
            return SimpleNamespace(error_code=16)

    client: Any = Refusing()
    assert await GroupOffsets(client).fetch("g", PLACE) == (-1, 16)


async def test_the_settings_of_a_topic_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each topic has other settings than the one before, and they change while it exists."""
    asked: list[dict[str, str]] = []

    async def create(common: Any, new: Any) -> tuple[str, None]:
        asked.append(new.topic_configs)
        return "ok", None

    async def alter_topic(common: Any, topic: str, settings: dict[str, str]) -> str | None:
        asked.append(settings)
        return None if len(asked) < 3 else "UnknownTopicOrPartitionError"

    monkeypatch.setattr(aio_admin, "create", create)
    monkeypatch.setattr(aio_admin, "alter_topic", alter_topic)
    monkeypatch.setattr(topics, "ALTER_P", 1.0)
    monkeypatch.setattr(topics, "AT_ONCE_P", 0.0)
    client: Any = Client()
    asking = Topics(client, random.Random(1), "a", Administrator({}, 1))
    said = [await asking.ask(PLACE, 1, [1]) for _ in range(3)]
    assert said[1:] == ["alter a-0: NoError", "alter a-0: UnknownTopicOrPartitionError"]
    assert [len(settings) for settings in asked] == [0, 1, 0]
    assert await asking.lasting(1) == "a-lasting"
    said.append(await asking.ask(PLACE, 1, [1]))
    both = "alter a-0: UnknownTopicOrPartitionError, alter a-lasting: UnknownTopicOrPartitionError"
    assert said[-1] == both
    assert [len(settings) for settings in asked[-2:]] == [1, 0]


async def test_two_settings_are_changed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by a request of its own, perhaps through different brokers."""
    asked: list[tuple[int, str]] = []

    class Settings(Client):
        async def send(self, node: int, request: Any, group: Any = None) -> Any:
            [(_, topic, [(name, _, _)])] = vars(request)["_resources"]
            asked.append((node, name))
            return SimpleNamespace(resources=[(0, None, 2, topic)])

    monkeypatch.setattr(topics, "AT_ONCE_P", 1.0)
    client: Any = Settings()
    said = await Topics(client, random.Random(1), "a", Administrator({}, 1))._alter("a-0", [1, 2])
    assert said == "set twice a-0: NoError, NoError"
    assert [name for _, name in asked] == ["segment.ms", "file.delete.delay.ms"]
    assert {node for node, _ in asked} <= {1, 2}
