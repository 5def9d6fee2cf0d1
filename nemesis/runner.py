"""Applies the faults of a schedule to a cluster, and keeps track of those that are active."""

import dataclasses
import functools
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from model.capabilities.cluster import Cluster
from model.op import Op
from model.roles import NodeId
from nemesis import conditions
from nemesis.options import Once
from nemesis.package import DOWN, Applied, Effect, Fault, Package

log = logging.getLogger(__name__)


class _Active(NamedTuple):
    """An active fault."""

    package: Package
    fault: Fault
    applied: Applied


def _unheard() -> None:
    """Do nothing: the default for a caller that does not wait for the end of an action."""


class Nemesis:
    """Applies and heals faults on request: one action at a time, but measurements may overlap."""

    def __init__(self, cluster: Any, packages: Sequence[Package], rng: random.Random) -> None:
        """Check the packages; raises ``ValueError`` if the cluster lacks what one of them needs."""
        for package in packages:
            if not package.fits(cluster):
                needs = ", ".join(capability.__name__ for capability in package.needs)
                raise ValueError(f"the nemesis {package.name} needs a cluster with {needs}")
        self._cluster = cluster
        self._rng = rng
        self._packages = tuple(packages)
        self._by_name = {
            fault.name: (package, fault) for package in packages for fault in package.faults
        }
        self._active: dict[int, _Active] = {}
        self._restored: set[int] = set()
        """Active faults whose effect has been removed, while that is still measured."""

    async def is_reached(self, once: Mapping[str, Any]) -> bool:
        """Is the state of the cluster reached that a fault's option ``once`` describes?"""
        return await conditions.holds(self._cluster, msgspec.convert(dict(once), Once))

    async def invoke(self, op: Op, acted: Callable[[], None] = _unheard) -> Op:
        """Apply, measure or heal a fault; return its resolved targets and its measured effect.

        ``op.value``: ``{"id", "phase": "apply" | "measure" | "heal", "targets", "options"}``.
        ``acted`` is called as soon as only a measurement remains: from then on other faults may be
        applied and healed. Healing a fault that is not active (any more) changes nothing.
        Exceptions that the cluster raises reach the caller.
        """
        match op.value["phase"]:
            case "heal":
                targets, effect = await self._heal(op.value["id"], op.value["targets"], acted)
            case "measure":
                targets, effect = await self._measure(op.value["id"], op.value["targets"], acted)
            case _:
                targets, effect = await self._apply(op, acted)
        value = op.value | {
            "targets": targets,
            "effect": {"proved": effect.proved, "how": effect.how},
        }
        return msgspec.structs.replace(op, type="info", value=value)

    async def heal_all(self) -> None:
        """Heal the active faults, the last one first, and what failed faults have left.

        A heal that fails does not prevent the others.
        """
        for number, broken in reversed(list(self._active.items())):
            heal = functools.partial(self._heal, number, None, _unheard)
            await _try_to(f"fault {number} ({broken.fault.name})", heal)
        cleanups = dict.fromkeys(each for one in self._packages for each in one.cleanups)
        for cleanup in cleanups:
            if cleanup.cluster is not None:
                await _try_to(cleanup.what, functools.partial(cleanup.cluster, self._cluster))
        for cleanup in cleanups:
            if cleanup.node is not None and isinstance(self._cluster, Cluster):
                for node in self._cluster.nodes:
                    clean = functools.partial(cleanup.node, self._cluster, node)
                    await _try_to(f"{cleanup.what} of {node}", clean)

    async def _apply(self, op: Op, acted: Callable[[], None]) -> tuple[Any, Effect]:
        if op.f not in self._by_name:
            raise ValueError(f"no package has the fault {op.f}")
        package, fault = self._by_name[op.f]
        options = package.typed(op.f, op.value.get("options") or {})
        strike = package.strike or package.apply
        applied = await strike(self._cluster, op.f, op.value["targets"], options, self._rng)
        self._active[op.value["id"]] = _Active(package, fault, applied)
        if package.strike is not None:
            return await self._measure(op.value["id"], applied.targets, acted)
        return list(applied.targets), applied.effect

    async def _measure(
        self, number: int, targets: Any, acted: Callable[[], None]
    ) -> tuple[Any, Effect]:
        """Measure the effect of an active fault."""
        if number not in self._active:
            return targets, Effect(False, "the fault is not active")
        package, _, applied = self._active[number]
        effect = applied.effect
        acted()
        if package.measure is not None:
            effect = await package.measure(self._cluster, applied)
        return list(applied.targets), effect

    async def _heal(
        self, number: int, targets: Any, acted: Callable[[], None]
    ) -> tuple[Any, Effect]:
        if number not in self._active:
            return targets, Effect(False, "the fault is not active")
        package, fault, applied = self._active[number]
        kept = self._kept(number, fault.state)
        mine = dataclasses.replace(
            applied,
            targets=tuple(node for node in applied.targets if node not in kept),
            kept_down=frozenset(self._kept(number, DOWN)),
        )
        if package.restore is not None:
            await package.restore(self._cluster, mine)
            self._restored.add(number)
            acted()
        effect = await package.heal(self._cluster, mine)
        if kept:
            others = ", ".join(f"fault {other} keeps {node}" for node, other in kept.items())
            how = f"{effect.how}; {others} {fault.state}"
            effect = Effect(effect.proved, how)
        if effect.proved:
            self._active.pop(number, None)
            self._restored.discard(number)
        return list(applied.targets), effect

    def _kept(self, number: int, state: str | None) -> dict[NodeId, int]:
        """Return the targets that other faults keep in a state, with the number of such a fault.

        A fault whose heal is only measured keeps none: it would restore none any more.
        """
        mine = self._active[number].applied.targets
        return {
            node: other
            for other, (_, fault, applied) in self._active.items()
            if other != number and other not in self._restored
            if state is not None and fault.state == state
            for node in applied.targets
            if node in mine
        }


async def _try_to(what: str, restore: Callable[[], Awaitable[object]]) -> None:
    try:
        await restore()
    except Exception as error:
        said, *_ = [*str(error).splitlines(), ""]
        log.error("%s could not be healed: %s: %s", what, type(error).__name__, said)
        log.debug("traceback: %s could not be healed", what, exc_info=True)
