"""What static members ask that stay in their groups, with made up answers."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from workloads.client.asking import groups, memberships
from workloads.client.asking.memberships import Memberships
from workloads.client.asking.requests import Place

PLACE = Place("t", 0)


class Client:
    """A client of a coordinator with one group, which has static members only."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.timeouts: list[tuple[int, int]] = []
        self.is_known = True
        self.beat: int | None = None
        """The code with which all heartbeats are answered; None: that of the member."""
        self.protocols: list[tuple[tuple[str, bytes], ...]] = []
        self.lookups: list[str] = []
        self.removed: list[int] = []
        """How many members each request removes at once."""

    async def coordinator_lookup(self, kind: int, group: str) -> int:
        self.lookups.append(group)
        return 1

    async def send(self, node: int, request: Any, group: Any = None) -> Any:
        match type(request).__name__:
            case "JoinGroupRequest":
                self.names.append(f"m{len(self.names)}")
                self.timeouts.append(_timeouts(request))
                self.protocols.append(tuple(vars(request)["_group_protocols"]))
                return SimpleNamespace(
                    error_code=0,
                    generation_id=1,
                    member_id=self.names[-1],
                    leader_id="m0",
                    members=[],
                )
            case "HeartbeatRequest":
                named = vars(request)["_membership"].member
                is_current = self.is_known and named == self.names[-1]
                code = 0 if is_current else 82
                return SimpleNamespace(error_code=code if self.beat is None else self.beat)
            case "RemoveRequest":
                rows = vars(request)["_members"]
                self.removed.append(len(rows))
                return SimpleNamespace(members=[(*row, 0) for row in rows])
            case _:
                return SimpleNamespace(error_code=0)


def _timeouts(request: Any) -> tuple[int, int]:
    fields = vars(request)
    return fields["_session_timeout"], fields["_rebalance_timeout"]


async def test_a_static_member_comes_twice_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """In later rounds it sends heartbeats, and joins again if they are refused."""
    monkeypatch.setattr(memberships, "STAYS_P", 1.0)
    monkeypatch.setattr(memberships, "NEW_P", 0.0)
    monkeypatch.setattr(memberships, "AGAIN_P", 0.0)
    client: Any = Client()
    asking = Memberships(client, random.Random(1), "g")
    beats = "beat: UnknownError, beat: NoError"
    joins = "join 1: NoError, sync: NoError"
    assert await asking.ask(PLACE, 1, [1]) == f"new, {joins}, {joins}, {beats}"
    assert await asking.ask(PLACE, 1, [1]) == f"later, {beats}"
    client.is_known = False
    assert f"{joins}, beat" in await asking.ask(PLACE, 1, [1])


async def test_other_members_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """They join with different timeouts, send heartbeats and no SyncGroup, or join again."""
    monkeypatch.setattr(memberships, "STAYS_P", 0.0)
    monkeypatch.setattr(groups, "BEAT_EVERY_S", 0.0)
    monkeypatch.setattr(memberships, "BEAT_EVERY_S", 0.0)
    client: Any = Client()
    asking = Memberships(client, random.Random(1), "g")
    said = {await asking.ask(PLACE, 1, [1]) for _ in range(20)}
    assert {each.split(", ")[0] for each in said} == {"slow", "unsynced", "resubscribed"}
    counts = {each.count("beat") for each in said if "resubscribed" not in each}
    assert counts == {4, 15, 17}
    assert {each.count("sync: ") for each in said if "unsynced" in each} == {1, 2}
    expected = {memberships.SLOW, memberships.FAST, groups.TIMEOUTS, memberships.PATIENT}
    assert set(client.timeouts) == expected
    assert client.removed == [2] * (20 // memberships.REMOVED_EVERY)
    assert {each.count("remove: ") for each in said} == {0, 2}


async def test_a_member_joins_a_stable_group_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its subscription is another one in most rounds; a heartbeat announces the rebalance, or no
    rebalance is noted."""
    monkeypatch.setattr(memberships, "BEAT_EVERY_S", 0.0)
    client: Any = Client()
    asking = Memberships(client, random.Random(1), "g")
    for number in range(20):
        asking._said, client.beat = [], 27 if number % 2 else 0
        await asking._resubscribed()
        assert ("no rebalance" in asking._said) == (client.beat == 0)
    subscriptions = [dict(each)["range"] for each in client.protocols]
    assert len(client.protocols) == 20 * 5
    assert 5 < len({each for each in subscriptions if each != subscriptions[0]}) < 20


class Rebalancing(Client):
    """A coordinator that lets every other JoinGroup wait for the next one."""

    def __init__(self, shortest_ms: int) -> None:
        super().__init__()
        self._shortest_ms = shortest_ms
        self._next: asyncio.Event | None = None
        self.beats = 0

    async def send(self, node: int, request: Any, group: Any = None) -> Any:
        name = type(request).__name__
        self.beats += name == "HeartbeatRequest"
        if name == "JoinGroupRequest" and _timeouts(request)[0] < self._shortest_ms:
            return SimpleNamespace(
                error_code=26, generation_id=-1, member_id="", leader_id="", members=[]
            )
        answer = await super().send(node, request, group)
        if name == "JoinGroupRequest" and len(self.names) > 3:  # the pair has joined
            if self._next is None:
                self._next = asyncio.Event()
                await self._next.wait()
            else:
                self._next.set()
        return answer


@pytest.mark.parametrize(("shortest_ms", "beats"), [(500, 10), (6000, 2)])
async def test_a_member_waits_for_longer_than_its_session(
    shortest_ms: int, beats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the broker accepts no session as short as that."""
    monkeypatch.setattr(memberships, "BEAT_EVERY_S", 0.0)
    client: Any = Rebalancing(shortest_ms)
    asking = Memberships(client, random.Random(1), "g")
    await asking._resubscribed()
    assert client.beats == beats
    used = groups.TIMEOUTS if shortest_ms > 600 else memberships.PATIENT
    assert set(client.timeouts) == {used}


async def test_a_static_member_changes_its_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it joins again, it may not support what it had supported."""
    monkeypatch.setattr(memberships, "STAYS_P", 1.0)
    monkeypatch.setattr(memberships, "NEW_P", 0.0)
    monkeypatch.setattr(memberships, "AGAIN_P", 1.0)
    client: Any = Client()
    asking = Memberships(client, random.Random(1), "g")
    for _ in range(30):
        await asking.ask(PLACE, 1, [1])
    assert set(client.protocols) == set(memberships.SUPPORTED)


async def test_only_the_last_groups_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of any length asks about a limited number of groups."""
    monkeypatch.setattr(memberships, "STAYS_P", 1.0)
    monkeypatch.setattr(memberships, "NEW_P", 1.0)
    client: Any = Client()
    asking = Memberships(client, random.Random(1), "g")
    for _ in range(9):
        await asking.ask(PLACE, 1, [1])
    assert [each.group for each in asking._kept] == ["g-6", "g-7", "g-8", "g-9"]


async def test_the_coordinator_is_looked_up_once_for_each_group_of_a_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And again in the next round, because another broker may coordinate the group then."""
    monkeypatch.setattr(memberships, "STAYS_P", 1.0)
    monkeypatch.setattr(memberships, "NEW_P", 0.0)
    client: Any = Client()
    asking = Memberships(client, random.Random(1), "g")
    for _ in range(3):
        await asking.ask(PLACE, 1, [1])
    assert client.lookups == ["g-1"] * 3
