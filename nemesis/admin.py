"""reassign, elect-leaders: what operators ask of a healthy cluster, asked while faults are active.

``reassign`` moves partitions to other replicas: the target broker gives up the replicas that it
has, and replaces another replica in each of the other partitions. The heal may leave the partitions
there, move them back, or cancel the move while it is in progress. ``elect-leaders`` makes the
target broker the preferred leader and requests an election; further elections may follow. Neither
fault breaks anything: a correct cluster does what it is asked as far as it can and loses nothing,
whatever other faults are active.
"""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from model import roles
from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import CanAdminister, HasRoles, Partition
from model.capabilities.processes import HasProcesses
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Key, Options, Seconds
from nemesis.package import Applied, Effect, Environment, Fault, Package, has_brokers

ENDS = ("stay", "back", "cancel")
ELECTIONS = 0.5
"""The share of draws that are elections; the others are reassignments."""
TIMES_MAX = 4
"""The largest number of elections that one fault requests in a row."""
GAP_S = (0.02, 1.0)
"""The range of the time between two elections, and between a move and its cancellation."""
WITHIN_S = 12.0
"""How long the controller may take to act on a request.

It covers the time until the session of a failed controller has expired and another controller is
elected.
"""
FURTHER_S = 4.0
"""How long the further elections of one fault may take together, besides the gaps between them.

All faults after them wait, so a slow cluster has fewer elections and not a late schedule.
"""
CHOICE_S = 2.0
"""How long ``elect-leaders`` insists on the target broker before it accepts another new leader."""
HEAL_S = 3.0
LOOK_EVERY_S = 0.1
OVERHEAD_S = 2.5
INTERNAL = "__"
"""The prefix of the names of internal topics."""
INTERNAL_MAX = 6
"""The largest number of internal partitions that one fault affects."""

Replicas = tuple[NodeId, ...]


class PartitionOptions(Options, frozen=True, kw_only=True):
    """The options that select partitions."""

    keys: list[Key] = msgspec.field(default_factory=list)
    """The partitions; if none of them exists, all partitions of clients."""
    internal: bool = False
    """Are partitions of coordinators selected instead?"""


class ReassignOptions(PartitionOptions, frozen=True, kw_only=True):
    """The options of ``reassign``."""

    end: Literal["stay", "back", "cancel"] = "back"
    """What the heal does: leave them, move them back, or do so while they still move."""
    factor: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """The number of replicas (default: as many as there are)."""
    replicas: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(min_length=1)] | None = None
    """The new replicas by broker number, whatever the target."""


class ElectOptions(PartitionOptions, frozen=True, kw_only=True):
    """The options of ``elect-leaders`` and ``elect-apart``."""

    times: Annotated[int, Meta(ge=1, le=1000)] = 1
    """The number of elections; of ``elect-apart``, of those after the links are cut."""
    gap_s: Seconds | None = None
    """The time between two elections."""


class Administered(Cluster, CanAdminister, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """The replicas that partitions must have after the heal."""

    goals: Mapping[str, Replicas]
    cancels: bool


def room(shape: ClusterShape) -> bool:
    """Does the cluster have a second broker and a partition to move?"""
    return len(shape.brokers) > 1 and bool(shape.keys)


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw some partitions: half of the time, where there are any, those of coordinators."""
    options: dict[str, Any] = {"keys": rng.sample(shape.keys, rng.randint(1, len(shape.keys)))}
    if shape.coordinators and shape.internal_topics and rng.random() < 0.5:
        options = {"internal": True}
    one = aim.draw_broker(rng, shape)
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
    cluster: Administered,
    fault: str,
    targets: Any,
    options: ReassignOptions | ElectOptions,
    rng: random.Random,
) -> Applied:
    """Request the change; proved when ZooKeeper has it for at least one partition.

    An election is proved by another leader or, when no other replica is in sync, by another
    preferred leader.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    if isinstance(options, ElectOptions):
        elections = await _in_turn(cluster, nodes, options, rng)
        how = "; then ".join(", ".join(led) or "no leader changed" for led in elections)
        return Applied(nodes, Effect(bool(elections[0]), how))
    return await _move(cluster, nodes, options, rng)


async def heal(cluster: Administered, applied: Applied) -> Effect:
    """Restore the wanted replicas; proved when ZooKeeper assigns them to every partition.

    The heal is also proved when the controller refuses for every other partition, for example
    because a broker is down: the partition then stays as it is, and nothing is broken by that.
    """
    if applied.undo is None:
        return Effect(True, "there is nothing to restore")
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
    return Effect(all(key in answers for key in left), f"not moved back: {stay}")


class Shifted(NamedTuple):
    """The partitions that an election has changed."""

    led: tuple[str, ...]
    """Partitions that have the wanted leader now and did not have it before."""
    preferred: tuple[str, ...]
    """Partitions that have the wanted preferred leader now and did not have it before."""


async def shift(cluster: Administered, wishes: Mapping[str, NodeId]) -> Shifted:
    """Make the given brokers the preferred leaders of these partitions, and request elections."""
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


async def eligible(
    cluster: Administered,
    options: PartitionOptions,
    rng: random.Random,
    *,
    excluding: Sequence[NodeId] = (),
) -> dict[str, NodeId]:
    """Choose a new leader for each selected partition: another in-sync replica that runs.

    ``options`` select the partitions. The brokers in ``excluding`` are not chosen, and a partition
    without such a replica is left out.
    """
    standing = [node for node in cluster.brokers if await aim.stands(cluster, node)]
    found: dict[str, NodeId] = {}
    for each in await _struck(cluster, options, rng):
        others = [n for n in each.isr if n in standing and n not in (each.leader, *excluding)]
        if others:
            found[each.key] = rng.choice(others)
    return found


async def _in_turn(
    cluster: Administered, nodes: Sequence[NodeId], options: ElectOptions, rng: random.Random
) -> list[list[str]]:
    """Run the elections and return the result of each: the first, and more while there is time."""
    now_s = asyncio.get_running_loop().time
    gap_s, further = options.gap_s or 0.0, options.times - 1
    until_s = now_s() + WITHIN_S
    elections = [await elected(cluster, nodes, options, rng)]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(min(until_s, now_s() + further * gap_s + FURTHER_S)):
            for _ in range(further):
                await asyncio.sleep(gap_s)
                elections.append(await elected(cluster, (), options, rng))
    return elections


async def elected(
    cluster: Administered, nodes: Sequence[NodeId], options: PartitionOptions, rng: random.Random
) -> list[str]:
    """Elect other leaders for the selected partitions, and describe the first that have changed.

    The first of ``nodes`` is tried first where it is a follower, in sync or not; after
    ``CHOICE_S``, any in-sync follower. If no leader has changed after twice that time, because no
    other replica is in sync, changed preferred leaders are enough.
    """
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    preferred: dict[str, NodeId] = {}
    while (waited_s := loop.time() - began_s) < WITHIN_S:
        if preferred and waited_s > 2 * CHOICE_S:
            return [f"{key} now prefers leader {node}" for key, node in preferred.items()]
        others = await eligible(cluster, options, rng)
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
    options: ReassignOptions,
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
            goals = {
                # If there are more brokers than replicas, any of them will do as a replica.
                key: wanted[key]
                if options.end == "stay" and len(wanted[key]) >= len(before[key])
                else before[key]
                for key in moved
            }
            how = ", ".join(
                f"{key} from {_names(before[key])} to {_names(wanted[key])}" for key in moved
            )
            return Applied(nodes, Effect(True, how), _Moved(goals, options.end == "cancel"))
        await asyncio.sleep(LOOK_EVERY_S)
    said = ", ".join(f"{key}: {error}" for key, error in answers.items()) or "no answer"
    return Applied(nodes, Effect(False, f"no partition moves: {said}"))


def _others(
    replicas: Replicas,
    nodes: Sequence[NodeId],
    standing: Sequence[NodeId],
    options: ReassignOptions,
    rng: random.Random,
) -> Replicas:
    """Return the new replicas of a partition with these replicas; empty if there are none."""
    if options.replicas is not None:
        return tuple(map(roles.broker, options.replicas))
    factor = options.factor or len(replicas)
    struck = nodes[0] if nodes else None
    stay = [node for node in replicas if node != struck]
    if struck is not None and struck not in replicas:
        stay = rng.sample(stay, min(len(stay), factor - 1))
        stay.append(struck)
    spare = [node for node in standing if node not in stay and node != struck]
    stay += rng.sample(spare, min(len(spare), max(0, factor - len(stay))))
    return tuple(rng.sample(stay, len(stay)))


async def _struck(
    cluster: Administered, options: PartitionOptions, rng: random.Random
) -> list[Partition]:
    found = [each for each in await cluster.partitions() if each.leader_epoch >= 0]
    internal = [each for each in found if each.topic.startswith(INTERNAL)]
    if options.internal and internal:
        return rng.sample(internal, min(len(internal), INTERNAL_MAX))
    clients = [each for each in found if each not in internal]
    return [each for each in clients if each.key in options.keys] or clients


def _names(nodes: Sequence[NodeId]) -> str:
    return f"[{' '.join(nodes)}]"


def _unknown_replica(
    options: ReassignOptions, targets: Any, environment: Environment
) -> str | None:
    """Refuse a broker in ``replicas`` that the cluster does not have."""
    known = range(1, len(environment.brokers) + 1)
    strange = [number for number in options.replicas or () if number not in known]
    return f"replicas = {strange[0]}: must be 1 to {len(known)}" if strange else None


PACKAGE = Package(
    name="admin",
    suits=has_brokers,
    faults=(
        Fault("reassign", ReassignOptions, aim.BROKERS, _unknown_replica),
        Fault("elect-leaders", ElectOptions, aim.BROKERS),
    ),
    needs=(CanAdminister, HasProcesses, HasRoles),
    color="#bcbd22",
    lane="admin",
    draw=draw,
    apply=apply,
    heal=heal,
    room=room,
)
