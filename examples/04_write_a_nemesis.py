"""A fault is a package of functions that draw it, apply it, heal it and prove that it took effect.

It uses only the capabilities of a cluster, which is a set of names here, so it runs on every target
that offers them. To offer it as ``--nemesis stutter``, list it in ``nemesis/catalogue.py``.
"""

import asyncio
import random
from typing import Any

from model.capabilities.processes import CanPause
from model.layout import with_zookeeper
from model.op import NEMESIS, Op
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import Applied, Effect, Fault, Package
from nemesis.runner import Nemesis


class StutterOptions(Options, frozen=True, kw_only=True):
    times: int = 3


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw a fault as data, so that a schedule can be stored, shrunk and replayed."""
    return Drawn("stutter", rng.uniform(0.5, 2.0), [rng.choice(shape.brokers)], {"times": 3})


async def apply(
    cluster: CanPause, fault: str, targets: Any, options: StutterOptions, rng: random.Random
) -> Applied:
    """Pause the targets several times and leave them paused; each pause is measured."""
    seen = 0
    for turn in range(options.times):
        for node in targets if turn else ():
            await cluster.resume(node)
        for node in targets:
            await cluster.pause(node)
        seen += all([await cluster.is_paused(node) for node in targets])
    how = f"{seen} of {options.times} freezes measured"
    return Applied(tuple(targets), Effect(seen == options.times, how))


async def heal(cluster: CanPause, applied: Applied) -> Effect:
    for node in applied.targets:
        await cluster.resume(node)
    return Effect(True, f"{', '.join(applied.targets)}: resumed")


FAULTS = (Fault("stutter", StutterOptions),)
PACKAGE = Package("stutter", FAULTS, (CanPause,), "#17becf", "process", draw, apply, heal)


class OneSet:
    """The smallest cluster whose nodes can be paused."""

    def __init__(self) -> None:
        self.paused: set[str] = set()

    async def pause(self, node: str) -> None:
        self.paused.add(node)

    async def resume(self, node: str) -> None:
        self.paused.discard(node)

    async def is_paused(self, node: str) -> bool:
        return node in self.paused


async def main() -> None:
    drawn = draw(random.Random(7), ClusterShape(with_zookeeper(3)))
    nemesis = Nemesis(OneSet(), [PACKAGE], random.Random(7))
    for phase in ("apply", "heal"):
        value = {"id": 1, "phase": phase, "targets": drawn.targets, "options": drawn.options}
        asked = Op(index=0, time_ns=0, process=NEMESIS, type="invoke", f="stutter", value=value)
        result = (await nemesis.invoke(asked)).value
        print(f"{phase} {result['targets']}: {result['effect']['how']}")


asyncio.run(main())
