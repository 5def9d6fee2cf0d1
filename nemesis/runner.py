"""Carries out the faults of a schedule on a cluster, and remembers what is broken."""

import logging
import random
from collections.abc import Sequence
from typing import Any

import msgspec

from model.op import Op
from model.roles import CanCut, CanPause, Cluster
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
            try:
                await self._heal(number, None)
            except Exception:
                log.exception("%s %d could not be healed", package.name, number)
        if isinstance(self._cluster, CanCut):
            await self._cluster.heal_all()
        if isinstance(self._cluster, Cluster) and isinstance(self._cluster, CanPause):
            for node in self._cluster.nodes:
                if await self._cluster.is_paused(node):
                    await self._cluster.resume(node)

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
