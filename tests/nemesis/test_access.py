"""Faults of passwords and rights, on a cluster in memory."""

import random
from collections.abc import Mapping

import pytest

from model.capabilities.security import Login, Right
from model.layout import with_zookeeper
from model.roles import NodeId
from nemesis import access
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

ALL = ["broker-1", "broker-2", "broker-3"]


class GuardedFake(FakeCluster):
    """Brokers that know of each change at once, except those that are late."""

    def __init__(self) -> None:
        super().__init__()
        self.is_right = True
        self.rights: dict[Right, bool] = {"topics": True, "transactions": True}
        self.late: set[NodeId] = set()
        """Brokers that show what was before."""
        self.silent: set[NodeId] = set()
        self.confirms = True

    async def write_password(self, *, is_right: bool) -> bool:
        if self.confirms:
            self.is_right = is_right
        return self.confirms

    async def logins(self) -> Mapping[NodeId, Login]:
        return {node: self._login(node) for node in self.brokers}

    def _login(self, node: NodeId) -> Login:
        if node in self.silent:
            return "silence"
        return "accepted" if self.is_right != (node in self.late) else "refused"

    async def change_right(self, right: Right, *, is_granted: bool) -> bool:
        if self.confirms:
            self.rights[right] = is_granted
        return self.confirms

    async def has_right(self, right: Right) -> Mapping[NodeId, bool]:
        return {
            node: self.rights[right] != (node in self.late)
            for node in self.brokers
            if node not in self.silent
        }


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> GuardedFake:
    monkeypatch.setattr(access, "WITHIN_S", 0.1)
    monkeypatch.setattr(access, "HEAL_S", 0.1)
    monkeypatch.setattr(access, "EVERYWHERE_S", 0.0)
    monkeypatch.setattr(access, "LOOK_EVERY_S", 0.01)
    return GuardedFake()


async def test_a_password_is_changed_and_restored(guarded: GuardedFake, rng: random.Random) -> None:
    """New logins are refused, and accepted again after the heal."""
    applied = await apply(access, guarded, "change-credentials", ALL, {}, rng)
    assert (applied.effect.proved, guarded.is_right) == (True, False)
    assert applied.effect.how == (
        "a login by the clients' password is refused by broker-1, broker-2, broker-3"
    )
    healed = await access.heal(guarded, applied)
    assert (healed.proved, guarded.is_right) == (True, True)


@pytest.mark.parametrize(
    ("rights", "left"),
    [
        ("topics", {"topics": False, "transactions": True}),
        ("transactions", {"topics": True, "transactions": False}),
        ("all", {"topics": False, "transactions": False}),
    ],
)
async def test_rights_are_taken_away_and_given(
    rights: str, left: dict[Right, bool], guarded: GuardedFake, rng: random.Random
) -> None:
    """The option selects the rights; the heal gives exactly these."""
    applied = await apply(access, guarded, "revoke-acl", ALL, {"rights": rights}, rng)
    assert (applied.effect.proved, guarded.rights) == (True, left)
    assert (await access.heal(guarded, applied)).proved
    assert guarded.rights == {"topics": True, "transactions": True}


async def test_one_broker_proves_the_effect_but_not_the_heal(
    guarded: GuardedFake, rng: random.Random
) -> None:
    """A broker may learn of the change late; at the heal, every broker that answers must know."""
    guarded.late, guarded.silent = {"broker-2"}, {"broker-3"}
    applied = await apply(access, guarded, "change-credentials", ALL, {}, rng)
    assert applied.effect.proved
    assert applied.effect.how.endswith("refused by broker-1")
    assert not (await access.heal(guarded, applied)).proved
    guarded.late = set()
    assert (await access.heal(guarded, applied)).proved


async def test_a_change_that_no_broker_knows_is_repeated(
    guarded: GuardedFake, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker has confirmed it that had nothing to do, as it did not know of the former one."""
    changes: list[bool] = []
    change = guarded.change_right

    async def first_without_effect(right: Right, *, is_granted: bool) -> bool:
        changes.append(is_granted)
        return True if len(changes) == 1 else await change(right, is_granted=is_granted)

    monkeypatch.setattr(guarded, "change_right", first_without_effect)
    applied = await apply(access, guarded, "revoke-acl", ALL, {"rights": "topics"}, rng)
    assert (applied.effect.proved, guarded.rights["topics"]) == (True, False)
    assert changes == [False, False]


async def test_without_an_answer_nothing_is_proved(
    guarded: GuardedFake, rng: random.Random
) -> None:
    """Neither a change that no broker confirms, nor one that no broker shows, is proved."""
    guarded.confirms = False
    applied = await apply(access, guarded, "revoke-acl", ALL, {}, rng)
    assert not applied.effect.proved
    assert "none confirmed the change" in applied.effect.how
    guarded.confirms, guarded.silent = True, {*guarded.brokers}
    assert not (await apply(access, guarded, "change-credentials", ALL, {}, rng)).effect.proved


async def test_leftovers_are_restored(guarded: GuardedFake) -> None:
    """At the end of a run, the password is right and all rights are given, whatever failed."""
    guarded.is_right, guarded.rights["topics"] = False, False
    await access.restore(guarded)
    assert (guarded.is_right, guarded.rights) == (True, {"topics": True, "transactions": True})


def test_draws() -> None:
    """Both faults are drawn, with every right, and concern all brokers."""
    shape = ClusterShape(with_zookeeper(3))
    drawn = [access.draw(random.Random(seed), shape) for seed in range(40)]
    assert {each.fault for each in drawn} == {"change-credentials", "revoke-acl"}
    rights = {each.options["rights"] for each in drawn if each.options}
    assert rights == {"topics", "transactions", "all"}
    assert {tuple(each.targets) for each in drawn} == {tuple(ALL)}
    low, high = access.LASTING_S
    assert all(low <= each.duration_s <= high for each in drawn)
