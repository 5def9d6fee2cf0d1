"""reassign, elect-leaders: what operators ask of a cluster that is well, asked of one that is not.

``reassign`` moves partitions to other replicas: whoever is struck leaves those that it has, and
takes somebody's place in the others. Perhaps it is turned back, or cancelled under way.
``elect-leaders`` has whoever is struck preferred as the leader, and elected, perhaps with others
in turn. Both break nothing: a correct cluster does as it is told as far as it can, and loses
nothing by it, whatever else happens meanwhile.
"""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from model import roles
from model.roles import CanAdminister, CanKill, CanPause, Cluster, HasRoles, NodeId, Partition
from nemesis import targets as aim
from nemesis.package import Applied, Drawn, Effect, Package, Shape

FAULTS = ("reassign", "elect-leaders")
ENDS = ("stay", "back", "cancel")
ELECTIONS = 0.5
"""The share of draws."""
TIMES_MAX = 4
"""How often leaders are elected in a row."""
GAP_S = (0.02, 1.0)
"""How long a leader leads then, from and to."""
WITHIN_S = 12.0
"""How long a controller may take to do anything of it: sessions have to end before there is
another one."""
CHOICE_S = 2.0
"""For how long whoever is struck is insisted on, as the one who is elected."""
HEAL_S = 3.0
LOOK_EVERY_S = 0.1
OVERHEAD_S = 2.5
INTERNAL = "__"
"""What the names of topics begin with that brokers keep for themselves."""
INTERNAL_MAX = 6
"""How many of their partitions are struck at once."""

Replicas = tuple[NodeId, ...]


class Administered(Cluster, CanAdminister, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """Where partitions are to be in the end."""

    goals: Mapping[str, Replicas]
    cancels: bool


def room(shape: Shape) -> bool:
    """There is somewhere else to go."""
    return len(shape.brokers) > 1 and bool(shape.keys)


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """Some partitions; now and then those of coordinators, where there are any."""
    options: dict[str, Any] = {"keys": rng.sample(shape.keys, rng.randint(1, len(shape.keys)))}
    if shape.coordinators and rng.random() < 0.5:
        options = {"internal": True}
    one = aim.draw_one(rng, shape)
    low, high = GAP_S
    gap_s = low * (high / low) ** rng.random()
    if rng.random() < ELECTIONS and shape.replicas > 1:
        times = rng.randint(1, TIMES_MAX)
        if times > 1:
            options |= {"times": times, "gap_s": round(gap_s, 3)}
        return Drawn("elect-leaders", 0.0, one, options, overhead_s=OVERHEAD_S + times * gap_s)
    if "keys" in options:
        options["factor"] = shape.replicas
    options["end"] = rng.choice(ENDS)
    duration_s = gap_s if options["end"] == "cancel" else rng.uniform(0.1, 3.0)
    return Drawn("reassign", duration_s, one, options, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Administered, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when ZooKeeper has what was asked for, of one partition at least.

    Of an election that is another leader, or another who is preferred when nobody else is in sync.

    Options: ``keys``, the partitions (all of clients; none of those is there: all); ``internal``,
    those of coordinators instead. Of ``reassign``: ``end``, what becomes of it (``back``, to where
    they were; ``cancel``, the same, if they are still under way; ``stay``); ``factor``, how many
    replicas there ought to be (as there are); ``replicas``, which ones, by number, whoever is
    struck. Of ``elect-leaders``: ``times``, and ``gap_s`` between them. ``ValueError`` for another
    ``end``.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    if fault == "elect-leaders":
        told = await _in_turn(cluster, nodes, options, rng)
        how = "; then ".join(", ".join(led) or "nobody else leads" for led in told)
        return Applied(nodes, Effect(bool(told[0]), how))
    if options.get("end", "back") not in ENDS:
        raise ValueError(f"end = {options['end']}: there are {', '.join(ENDS)}")
    return await _move(cluster, nodes, options, rng)


async def heal(cluster: Administered, applied: Applied) -> Effect:
    """Proved when ZooKeeper says that every partition is to be where it should in the end; or the
    controller that it cannot be, as when a broker is down: then it stays, and nothing is broken."""
    if applied.undo is None:
        return Effect(True, "there is nothing to be mended")
    moved: _Moved = applied.undo
    answers: Mapping[str, str] = {}
    left: dict[str, Replicas] = {}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HEAL_S):
            while True:
                now = {each.key: each for each in await cluster.partitions()}
                left = {
                    key: goal
                    for key, goal in moved.goals.items()
                    if key not in now or now[key].target != goal
                }
                if not left:
                    return Effect(True, f"{len(moved.goals)} partitions are where they should be")
                under_way = [key for key in left if key in now and now[key].is_moving]
                if moved.cancels and under_way:
                    answers = await cluster.reassign(dict.fromkeys(under_way))
                else:
                    answers = await cluster.reassign(left)
                await asyncio.sleep(LOOK_EVERY_S)
    stay = ", ".join(f"{key}: {answers.get(key, 'no answer')}" for key in left)
    return Effect(all(key in answers for key in left), f"where they are stay {stay}")


class Shifted(NamedTuple):
    """What became of wishes for other leaders; keys."""

    led: tuple[str, ...]
    """Led as was wished, and were not before."""
    preferred: tuple[str, ...]
    """To be led as was wished, and were not before."""


async def shift(cluster: Administered, wishes: Mapping[str, NodeId]) -> Shifted:
    """Have these partitions led by these brokers."""
    before = {each.key: each for each in await cluster.partitions()}
    wanted = {
        key: (first, *(node for node in before[key].target if node != first))
        for key, first in wishes.items()
        if key in before and before[key].leader != first
    }
    reordered = {key: nodes for key, nodes in wanted.items() if before[key].target != nodes}
    if reordered:
        await cluster.reassign(reordered)
    if wanted:
        await cluster.elect_preferred(list(wanted))
    after = {each.key: each for each in await cluster.partitions()}
    return Shifted(
        tuple(key for key in wanted if key in after and after[key].leader == wishes[key]),
        tuple(key for key in reordered if key in after and after[key].target == wanted[key]),
    )


async def able(
    cluster: Administered,
    options: Mapping[str, Any],
    rng: random.Random,
    *,
    but: Sequence[NodeId] = (),
) -> dict[str, NodeId]:
    """For each partition that these options mean, somebody else in sync who stands and could lead
    it, none of ``but``."""
    standing = [node for node in cluster.brokers if await aim.stands(cluster, node)]
    found: dict[str, NodeId] = {}
    for each in await _struck(cluster, options, rng):
        others = [n for n in each.isr if n in standing and n not in (each.leader, *but)]
        if others:
            found[each.key] = rng.choice(others)
    return found


async def _in_turn(
    cluster: Administered, nodes: Sequence[NodeId], options: Mapping[str, Any], rng: random.Random
) -> list[list[str]]:
    """Of each election what came of it; as many as there is time for, and one at least."""
    until_s = asyncio.get_running_loop().time() + WITHIN_S
    told = [await elected(cluster, nodes, options, rng)]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(until_s):
            for _ in range(int(options.get("times", 1)) - 1):
                await asyncio.sleep(float(options.get("gap_s", 0.0)))
                told.append(await elected(cluster, (), options, rng))
    return told


async def elected(
    cluster: Administered, nodes: Sequence[NodeId], options: Mapping[str, Any], rng: random.Random
) -> list[str]:
    """By whom these partitions are led now that were led by somebody else: by the first of
    ``nodes``, in sync or not, where it may lead; after some time, by somebody in sync; after that,
    by whom they are to be led, as nobody else is in sync."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    preferred: dict[str, NodeId] = {}
    while (waited_s := loop.time() - began_s) < WITHIN_S:
        if preferred and waited_s > 2 * CHOICE_S:
            return [f"{key} is to be led by {node}" for key, node in preferred.items()]
        others = await able(cluster, options, rng)
        wishes: dict[str, NodeId] = {}
        for each in await _struck(cluster, options, rng):
            followers = [node for node in each.target if node != each.leader]
            if nodes and waited_s < CHOICE_S and nodes[0] in followers:
                wishes[each.key] = nodes[0]
            elif each.key in others:
                wishes[each.key] = others[each.key]
            elif followers and each.key not in preferred:
                wishes[each.key] = rng.choice(followers)
        shifted = await shift(cluster, wishes)
        if shifted.led:
            return [f"{key} by {wishes[key]}" for key in shifted.led]
        preferred |= {key: wishes[key] for key in shifted.preferred}
        await asyncio.sleep(LOOK_EVERY_S)
    return []


async def _move(
    cluster: Administered,
    nodes: tuple[NodeId, ...],
    options: Mapping[str, Any],
    rng: random.Random,
) -> Applied:
    loop = asyncio.get_running_loop()
    until_s = loop.time() + WITHIN_S
    answers: Mapping[str, str] = {}
    while loop.time() < until_s:
        before = {each.key: each.target for each in await _struck(cluster, options, rng)}
        standing = [node for node in cluster.brokers if await aim.stands(cluster, node)]
        wanted = {
            key: other
            for key, replicas in before.items()
            if (other := _others(replicas, nodes, standing, options, rng)) != replicas and other
        }
        answers = await cluster.reassign(wanted) if wanted else {}
        after = {each.key: each.target for each in await cluster.partitions()}
        moved = [key for key, replicas in wanted.items() if after.get(key) == replicas]
        if moved:
            end = options.get("end", "back")
            goals = {
                # Where there are more brokers than replicas, one replica is as good as another.
                key: wanted[key]
                if end == "stay" and len(wanted[key]) >= len(before[key])
                else before[key]
                for key in moved
            }
            how = ", ".join(
                f"{key} from {_names(before[key])} to {_names(wanted[key])}" for key in moved
            )
            return Applied(nodes, Effect(True, how), _Moved(goals, end == "cancel"))
        await asyncio.sleep(LOOK_EVERY_S)
    said = ", ".join(f"{key}: {error}" for key, error in answers.items()) or "no answer"
    return Applied(nodes, Effect(False, f"nothing moves: {said}"))


def _others(
    replicas: Replicas,
    nodes: Sequence[NodeId],
    standing: Sequence[NodeId],
    options: Mapping[str, Any],
    rng: random.Random,
) -> Replicas:
    """Where a partition goes that has these replicas; nowhere: to none."""
    if "replicas" in options:
        return tuple(map(roles.broker, options["replicas"]))
    factor = int(options.get("factor", len(replicas)))
    struck = nodes[0] if nodes else None
    stay = [node for node in replicas if node != struck]
    if struck is not None and struck not in replicas:
        stay = rng.sample(stay, min(len(stay), factor - 1))
        stay.append(struck)
    spare = [node for node in standing if node not in stay and node != struck]
    stay += rng.sample(spare, min(len(spare), max(0, factor - len(stay))))
    return tuple(rng.sample(stay, len(stay)))


async def _struck(
    cluster: Administered, options: Mapping[str, Any], rng: random.Random
) -> list[Partition]:
    found = [each for each in await cluster.partitions() if each.leader_epoch >= 0]
    internal = [each for each in found if each.topic.startswith(INTERNAL)]
    if options.get("internal", False) and internal:
        return rng.sample(internal, min(len(internal), INTERNAL_MAX))
    clients = [each for each in found if each not in internal]
    keys = options.get("keys", ())
    return [each for each in clients if each.key in keys] or clients


def _names(nodes: Sequence[NodeId]) -> str:
    return f"[{' '.join(nodes)}]"


PACKAGE = Package(
    name="admin",
    faults=FAULTS,
    needs=(CanAdminister, CanKill, CanPause, HasRoles),
    color="#bcbd22",
    lane="admin",
    draw=draw,
    apply=apply,
    heal=heal,
    room=room,
)
