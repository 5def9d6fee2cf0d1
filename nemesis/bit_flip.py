"""bit-flip: one stored bit of a partition's log on a broker is flipped.

The CRC of the batch reveals it to every reader that checks it: clients do; followers do, before
they store a batch; a broker does when it starts after an unclean shutdown, for the part of a log
that it may have written last. A broker that serves its log does not check it and sends what it has.
So while the leader has a flipped bit, consumers cannot read past the batch, and a follower that
lacks the batch cannot fetch it. A leader that finds the bit when it starts truncates its log there,
even if records after it were acknowledged. A correct Kafka therefore stalls or loses records, and
the fault is only for schedules that are written by hand.
"""

import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.machines import CanFlipBits, Flip
from model.capabilities.processes import CanKill, CanPause
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.options import Key, Options
from nemesis.package import Applied, Effect, Fault, Package, has_brokers


class FlipOptions(Options, frozen=True, kw_only=True):
    """The options of ``bit-flip``."""

    key: Key
    """The partition in whose log the bit is flipped."""


class Corruptible(Cluster, CanFlipBits, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


async def apply(
    cluster: Corruptible, fault: str, targets: Any, options: FlipOptions, rng: random.Random
) -> Applied:
    """Flip a bit on each target; proved when the batch does not match its CRC."""
    nodes = await aim.resolve(cluster, targets, rng)
    flips: dict[NodeId, Flip] = {}
    outcomes = []
    for node in nodes:
        flip = await cluster.flip_bit(node, options.key)
        if flip is None:
            outcomes.append(f"{node}: no batch of partition {options.key} is stored")
            continue
        damaged = await cluster.is_damaged(node, flip)
        state = "does not match" if damaged else "matches"
        outcomes.append(f"{node}: {flip.path} at {flip.at}, the batch {state} its CRC")
        if damaged:
            flips[node] = flip
    proved = bool(nodes) and len(flips) == len(nodes)
    return Applied(nodes, Effect(proved, "; ".join(outcomes) or "there was no target"), flips)


async def heal(cluster: Corruptible, applied: Applied) -> Effect:
    """Flip the bit back if the batch is still stored; proved when no batch is damaged."""
    flips: dict[NodeId, Flip] = applied.undo
    for node, flip in flips.items():
        await cluster.flip_back(node, flip)
    left = [node for node, flip in flips.items() if await cluster.is_damaged(node, flip)]
    return Effect(not left, f"damaged: {', '.join(left) or 'nothing'}")


PACKAGE = Package(
    name="bit-flip",
    suits=has_brokers,
    faults=(Fault("bit-flip", FlipOptions, aim.BROKERS),),
    needs=(CanFlipBits, CanKill, CanPause, HasRoles),
    color="#ff9896",
    lane="process",
    draw=None,
    apply=apply,
    heal=heal,
)
