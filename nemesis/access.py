"""change-credentials, revoke-acl: clients lose their password or their right to write, for a while.

An operator changes the password of the workloads' user, or takes away its right to write to topics
or with transactional ids; the heal restores it. Connections that exist stay authenticated until
they must authenticate again. No record that was acknowledged before may be lost, and no transaction
may be committed of which a record was refused.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import HasProcesses
from model.capabilities.security import CanChangeCredentials, CanChangeRights, Right
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import Applied, Cleanup, Effect, Fault, Package, has_brokers

CREDENTIALS, RIGHTS = "change-credentials", "revoke-acl"
WITHIN_S = 12.0
"""How long a change may take.

It covers the time until a broker without a ZooKeeper session has another one.
"""
HEAL_S = 4.0
"""The same for a heal, which is tried again after the heals of other faults."""
EVERYWHERE_S = 2.0
"""How long the fault waits for the brokers that know of the change late."""
LOOK_EVERY_S = 0.1
LASTING_S = (0.5, 8.0)
"""The range of the duration: less or more than clients may stay authenticated."""
OVERHEAD_S = 2.5
_RIGHTS: Mapping[str, Sequence[Right]] = {
    "topics": ("topics",),
    "transactions": ("transactions",),
    "all": ("topics", "transactions"),
}


class RevokeOptions(Options, frozen=True, kw_only=True):
    """The options of ``revoke-acl``."""

    rights: Literal["topics", "transactions", "all"] = "all"
    """The right that is taken away: to write to topics, with transactional ids, or both."""


class Guarded(Cluster, CanChangeCredentials, CanChangeRights, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one of the two faults; it concerns the clients of all brokers."""
    low, high = LASTING_S
    duration_s = low * (high / low) ** rng.random()
    brokers = [*shape.brokers]
    if rng.random() < 0.5:
        return Drawn(CREDENTIALS, duration_s, brokers, overhead_s=OVERHEAD_S)
    options = {"rights": rng.choice([*_RIGHTS])}
    return Drawn(RIGHTS, duration_s, brokers, options, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Guarded, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """Take the password or the right away.

    Proved when a broker refuses a new login by the clients' password, or says that the user does
    not have the right. Brokers that cannot read ZooKeeper may know of it later.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    if isinstance(options, RevokeOptions):
        rights = _RIGHTS[options.rights]
        effects = [await _changed_right(cluster, right, is_granted=False) for right in rights]
        effect = Effect(all(each.proved for each in effects), "; ".join(e.how for e in effects))
        return Applied(nodes, effect, rights)
    return Applied(nodes, await _changed_password(cluster, is_right=False))


async def heal(cluster: Guarded, applied: Applied) -> Effect:
    """Restore it; proved when every broker that answers knows of it."""
    rights: Sequence[Right] | None = applied.undo
    if rights is None:
        return await _changed_password(cluster, is_right=True)
    effects = [await _changed_right(cluster, right, is_granted=True) for right in rights]
    return Effect(all(each.proved for each in effects), "; ".join(each.how for each in effects))


async def _changed_password(cluster: Guarded, *, is_right: bool) -> Effect:
    """Set the password, until a broker has confirmed it and new logins show it."""
    wanted = "accepted" if is_right else "refused"

    async def known() -> dict[NodeId, bool]:
        found = await cluster.logins()
        return {node: said == wanted for node, said in found.items() if said != "silence"}

    change = lambda: cluster.write_password(is_right=is_right)  # noqa: E731
    proved, by = await _until_known(change, known, everywhere=is_right)
    return Effect(proved, f"a login by the clients' password is {wanted} by {by}")


async def _changed_right(cluster: Guarded, right: Right, *, is_granted: bool) -> Effect:
    """Give the right or take it away, until a broker has confirmed it and others know of it."""

    async def known() -> dict[NodeId, bool]:
        found = await cluster.has_right(right)
        return {node: has == is_granted for node, has in found.items()}

    change = lambda: cluster.change_right(right, is_granted=is_granted)  # noqa: E731
    proved, by = await _until_known(change, known, everywhere=is_granted)
    what = "is known to" if is_granted else "is taken away according to"
    return Effect(proved, f"the right to write ({right}) {what} {by}")


async def _until_known(
    change: Callable[[], Awaitable[bool]],
    known: Callable[[], Awaitable[Mapping[NodeId, bool]]],
    *,
    everywhere: bool,
) -> tuple[bool, str]:
    """Repeat a change until it is confirmed and known; return whether it is, and to which brokers.

    ``known``: for each broker that answers, whether it knows. With ``everywhere`` all of these must
    know in the end; otherwise one is enough after ``EVERYWHERE_S``. A change that no broker knows
    after this time is asked for again: the broker that has confirmed it may not have known of the
    former change yet, and had nothing to do.
    """
    clock = asyncio.get_running_loop().time
    began_s, within_s = clock(), HEAL_S if everywhere else WITHIN_S
    is_confirmed, now, changed_s = False, dict[NodeId, bool](), began_s
    while (waited_s := clock() - began_s) < within_s:
        is_unknown = bool(now) and not any(now.values())
        if not is_confirmed or (is_unknown and clock() - changed_s > EVERYWHERE_S):
            changed_s = clock()
            is_confirmed = await change() or is_confirmed
        now = dict(await known()) if is_confirmed else {}
        late = waited_s > EVERYWHERE_S and not everywhere
        if now and (all(now.values()) or (late and any(now.values()))):
            return True, ", ".join(node for node in now if now[node])
        await asyncio.sleep(LOOK_EVERY_S)
    if not is_confirmed:
        return False, "no broker: none confirmed the change"
    return False, ", ".join(node for node in now if now[node]) or "no broker"


async def restore(cluster: Guarded) -> None:
    """Set the password, and give the rights, whatever faults have left."""
    await cluster.write_password(is_right=True)
    for right in _RIGHTS["all"]:
        await cluster.change_right(right, is_granted=True)


PACKAGE = Package(
    name="access",
    suits=has_brokers,
    faults=(
        Fault(CREDENTIALS, targets=aim.BROKERS),
        Fault(RIGHTS, RevokeOptions, aim.BROKERS),
    ),
    needs=(CanChangeCredentials, CanChangeRights, HasProcesses, HasRoles),
    color="#637939",
    lane="admin",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(Cleanup("the access of clients", cluster=restore),),
)
