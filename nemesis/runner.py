"""Carries out the faults of a schedule on a cluster, and remembers what is broken."""

import functools
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from model.op import Op
from model.roles import (
    CanCut,
    CanDisconnect,
    CanDropPackets,
    CanFillDisk,
    CanHalt,
    CanLosePower,
    CanMeddle,
    CanPause,
    CanSetClock,
    CanSlowDisk,
    CanSqueeze,
    Cluster,
    NodeId,
)
from nemesis.package import Applied, Effect, Package

log = logging.getLogger(__name__)


class Nemesis:
    """Breaks and mends on request. One at a time: whoever asks waits for the answer."""

    def __init__(self, cluster: Any, packages: Sequence[Package], rng: random.Random) -> None:
        """``ValueError`` when the cluster lacks what a package needs."""
        for package in packages:
            if not package.fits(cluster):
                needs = ", ".join(capability.__name__ for capability in package.needs)
                raise ValueError(f"{package.name} needs a cluster that offers {needs}")
        self._cluster = cluster
        self._rng = rng
        self._by_fault = {fault: package for package in packages for fault in package.faults}
        self._broken: dict[int, tuple[Package, Applied]] = {}

    async def invoke(self, op: Op) -> Op:
        """Apply or heal; the answer has the targets as resolved and the effect as measured.

        ``op.value``: ``{"id", "phase": "apply" | "heal", "targets", "options"}``. Healing what is
        not broken (any more) changes nothing. What the cluster raises goes through to the caller.
        """
        if op.value["phase"] == "heal":
            targets, effect = await self._heal(op.value["id"], op.value["targets"])
        else:
            targets, effect = await self._apply(op)
        value = op.value | {
            "targets": targets,
            "effect": {"proved": effect.proved, "how": effect.how},
        }
        return msgspec.structs.replace(op, type="info", value=value)

    async def heal_all(self) -> None:
        """Mend what is still broken, the last first, and whatever was left half broken.

        A mend that fails does not spare the rest.
        """
        for number, (package, _) in reversed(list(self._broken.items())):
            heal = functools.partial(self._heal, number, None)
            await _try_to(f"{package.name} {number}", heal)
        if isinstance(self._cluster, CanCut):
            await _try_to("the links", self._cluster.heal_all)
        if isinstance(self._cluster, CanHalt):
            await _try_to("the points", self._cluster.all_go_on)
        if isinstance(self._cluster, CanMeddle):
            await _try_to("the messages", self._cluster.let_all_go)
        if isinstance(self._cluster, Cluster):
            for what, mend in _leftovers(self._cluster):
                for node in self._cluster.nodes:
                    await _try_to(f"{what} of {node}", functools.partial(mend, node))

    async def _apply(self, op: Op) -> tuple[Any, Effect]:
        package = self._by_fault.get(op.f)
        if package is None:
            raise ValueError(f"no package here has a fault called {op.f}")
        options = op.value.get("options") or {}
        applied = await package.apply(self._cluster, op.f, op.value["targets"], options, self._rng)
        self._broken[op.value["id"]] = (package, applied)
        return list(applied.targets), applied.effect

    async def _heal(self, number: int, targets: Any) -> tuple[Any, Effect]:
        if number not in self._broken:
            return targets, Effect(False, "not broken")
        package, applied = self._broken[number]
        effect = await package.heal(self._cluster, applied)
        if effect.proved:
            del self._broken[number]
        return list(applied.targets), effect


async def _try_to(what: str, mend: Callable[[], Awaitable[object]]) -> None:
    try:
        await mend()
    except Exception as error:
        said, *_ = [*str(error).splitlines(), ""]
        log.error("%s could not be healed: %s: %s", what, type(error).__name__, said)
        log.debug("how %s could not be healed", what, exc_info=True)


def _leftovers(cluster: Any) -> Iterator[tuple[str, Callable[[NodeId], Awaitable[None]]]]:
    """What a fault that failed half-way may have left on a node; none harms one that is whole."""
    if isinstance(cluster, CanDisconnect):
        yield "the network", cluster.reconnect
    if isinstance(cluster, CanDropPackets):
        yield "the packets", cluster.pass_packets
    if isinstance(cluster, CanSqueeze):
        yield "the limits", cluster.release
    if isinstance(cluster, CanFillDisk):
        yield "the disk", cluster.free_disk
    if isinstance(cluster, CanSlowDisk):
        yield "the slow disk", cluster.quicken_disk
    if isinstance(cluster, CanSetClock):
        yield "the clock", cluster.correct_clock
    if isinstance(cluster, CanLosePower):
        yield "the power", cluster.power_on
    if isinstance(cluster, CanPause):
        yield "the pause", functools.partial(_thaw, cluster)


async def _thaw(cluster: CanPause, node: NodeId) -> None:
    if await cluster.is_paused(node):
        await cluster.resume(node)
