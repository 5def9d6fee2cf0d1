"""bit-flip: one bit of what a broker has stored of a partition is not what it was.

The CRC of its batch tells whoever looks: clients do, followers do before they store a batch, a
broker does when it starts after an unclean end, for the part of a log that it may have written
last. A broker that serves its log does not: it sends what it has. So with a bit flipped on a leader
consumers cannot get past the batch, nor can a follower that lacks it, and a leader that finds it at
its start cuts its log there, whoever has acknowledged what. A correct Kafka stalls or loses by it,
and it is for schedules that are written by hand.
"""

import random
from typing import Any, Protocol

from model.roles import CanFlipBits, CanKill, CanPause, Cluster, Flip, HasRoles, NodeId
from nemesis import targets as aim
from nemesis.package import Applied, Effect, Package


class Corruptible(Cluster, CanFlipBits, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


async def apply(
    cluster: Corruptible, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when the batch does not match its CRC. Option ``key``: whose log, on each target."""
    nodes = await aim.resolve(cluster, targets, rng)
    flips: dict[NodeId, Flip] = {}
    told = []
    for node in nodes:
        flip = await cluster.flip_bit(node, options["key"])
        if flip is None:
            told.append(f"{node}: nothing is stored of {options['key']}")
            continue
        damaged = await cluster.is_damaged(node, flip)
        state = "does not match" if damaged else "matches"
        told.append(f"{node}: {flip.path} at {flip.at}, the batch {state} its CRC")
        if damaged:
            flips[node] = flip
    proved = bool(nodes) and len(flips) == len(nodes)
    return Applied(nodes, Effect(proved, "; ".join(told) or "nobody was there"), flips)


async def heal(cluster: Corruptible, applied: Applied) -> Effect:
    """Turn it back, if the batch is still there; proved when no batch is damaged."""
    flips: dict[NodeId, Flip] = applied.undo
    for node, flip in flips.items():
        await cluster.flip_back(node, flip)
    left = [node for node, flip in flips.items() if await cluster.is_damaged(node, flip)]
    return Effect(not left, f"damaged: {', '.join(left) or 'nothing'}")


PACKAGE = Package(
    name="bit-flip",
    faults=("bit-flip",),
    needs=(CanFlipBits, CanKill, CanPause, HasRoles),
    color="#ff9896",
    lane="process",
    draw=None,
    apply=apply,
    heal=heal,
)
