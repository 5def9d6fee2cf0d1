"""Flipped bits on a cluster in memory."""

import random

import pytest

from nemesis import bit_flip
from tests.nemesis.conftest import FakeCluster, apply

KEY = {"key": "x-0"}


async def test_damaged_and_whole_again(cluster: FakeCluster, rng: random.Random) -> None:
    """The batch does not match its CRC until the fault heals."""
    applied = await apply(bit_flip, cluster, "bit-flip", "leader:x-0", KEY, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == "broker-3: x-0/0.log at 70, the batch does not match its CRC"
    assert (await bit_flip.heal(cluster, applied)).proved
    assert cluster.damaged == set()


@pytest.mark.parametrize(
    ("stores", "how"),
    [
        (False, "no batch of partition x-0 is stored"),
        (True, "x-0/0.log at 70, the batch matches its CRC"),
    ],
)
async def test_without_effect_it_is_not_proved(
    cluster: FakeCluster, rng: random.Random, stores: bool, how: str
) -> None:
    """A log without a batch, or a batch that still matches its CRC, proves nothing."""
    cluster.immortal = True
    cluster.stored = {"broker-1"} if stores else set()
    applied = await apply(bit_flip, cluster, "bit-flip", ["broker-1"], KEY, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, f"broker-1: {how}")
    assert (await bit_flip.heal(cluster, applied)).proved


async def test_a_batch_that_stays_damaged_is_not_healed(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is still damaged after the heal is reported."""
    applied = await apply(bit_flip, cluster, "bit-flip", ["broker-1"], KEY, rng)

    async def flip_back(node: str, flip: object) -> None:
        pass

    monkeypatch.setattr(cluster, "flip_back", flip_back)
    healed = await bit_flip.heal(cluster, applied)
    assert (healed.proved, healed.how) == (False, "damaged: broker-1")
