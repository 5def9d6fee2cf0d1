"""hold-request, drop-response, corrupt-request: what happens to one message, and to no other.

``hold-request`` keeps one request of a named API on its way, or with ``part = "response"`` one
answer, and lets it go later: into another time, when its sender has long given it up. What follows
it on its connection waits behind it. ``drop-response`` lets a request be carried out and loses the
answer, with its connection: who asked cannot know, and asks again. ``corrupt-request`` turns over
one bit of a request, which a checksum on its way has missed; a drawn one is a produce, whose
batches have a checksum of their own.
"""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from model.roles import (
    CLIENTS,
    ZOOKEEPER,
    CanAdminister,
    CanExpire,
    CanKill,
    CanMeddle,
    CanPause,
    Cluster,
    HasRoles,
    NodeId,
)
from nemesis import admin
from nemesis import targets as aim
from nemesis.package import Applied, Drawn, Effect, Package, Shape

FAULTS = ("hold-request", "drop-response", "corrupt-request")
PARTS = ("request", "response")
FOLLOWERS_SHARE = 1 / 3
"""Of what is always under way, where there are followers: they fetch."""
LAST_RESORT = "Metadata"
"""What every client asks for every few seconds."""
ORDERS = (*["LeaderAndIsr"] * 3, "UpdateMetadata")
"""What a controller says when it has a reason to, as often; the one says more."""
STIRS = (True, "leaders")
"""Which reason."""
AGAIN_SHARE = 0.9
"""Of orders that are kept, and whose controller stays: there is another reason for one."""
AGAIN_S = (0.05, 2.0)
"""How much later, from and to."""
ORDERS_SHARE = 0.4
"""Of what is drawn, with somebody there to give the reason."""
CORRUPT_SHARE = 0.1
"""Of the other drawn ones."""
DROPPED_SHARE = 0.5
"""Of answers to clients and followers, the rest of which is kept; of orders, half as many."""
USURPED_SHARE = 0.3
"""Of orders that are kept: who gave them is replaced before they arrive."""
USURPED_S = 2.0
"""How long a controller may take to be replaced, and the next one to give its orders."""
_DONE = {
    "hold-request": "the request is kept",
    "hold-response": "the answer is kept",
    "drop-response": "the answer is lost",
    "corrupt-request": "one bit of the request is turned over",
}
CATCH_S = 3.0
"""How long a message is waited for at whom the fault is aimed at; then, as long, at any broker."""
LOOK_EVERY_S = 0.01
OVERHEAD_S = 2.5


class Meddled(Cluster, CanMeddle, CanExpire, CanAdminister, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """One message to a broker, or from it; kept for less or more than a session. An order alone:
    where others are down already, nobody is left to give the reason."""
    answered = [api for api in shape.asked if api != "Produce" or shape.acknowledged]
    api = rng.choice(answered)
    options: dict[str, Any] = {"api": api, "from": CLIENTS}
    options["or"] = [each for each in (*answered, LAST_RESORT) if each != api]
    if rng.random() < FOLLOWERS_SHARE and min(shape.replicas, len(shape.brokers)) > 1:
        options = {"api": "Fetch", "from": "brokers", "or": [LAST_RESORT]}
    if rng.random() < ORDERS_SHARE and len(shape.brokers) > 2:
        options = {"api": rng.choice(ORDERS), "from": aim.CONTROLLER}
        options["stir"] = rng.choice(STIRS) if shape.replicas > 1 else True
    targets = aim.draw_one(rng, shape)
    alone = "stir" in options
    if not alone and rng.random() < CORRUPT_SHARE:
        options = {"api": "Produce", "from": CLIENTS}
        return Drawn("corrupt-request", 0.0, targets, options, overhead_s=OVERHEAD_S)
    if rng.random() < DROPPED_SHARE / (2 if alone else 1):
        return Drawn("drop-response", 0.0, targets, options, alone=alone, overhead_s=OVERHEAD_S)
    options["part"] = rng.choice(PARTS)
    duration_s = rng.uniform(0.1, 2.5) * shape.session_timeout_s
    overhead_s = OVERHEAD_S
    if alone:
        # Late is an order when another has been obeyed in the meantime.
        options["part"] = rng.choice(("request", "request", *PARTS))
        duration_s = rng.uniform(1.0, 4.0) * shape.session_timeout_s
        if options["part"] == "request" and rng.random() < USURPED_SHARE:
            options["usurped"] = True
            overhead_s += USURPED_S
        elif options["part"] == "request" and rng.random() < AGAIN_SHARE:
            low, high = AGAIN_S
            options["again_s"] = round(low * (high / low) ** rng.random(), 3)
            overhead_s += options["again_s"]
    return Drawn("hold-request", duration_s, targets, options, alone=alone, overhead_s=overhead_s)


async def apply(
    cluster: Meddled, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when a message was caught. Waits for one, at last from anybody to any broker.

    Options: ``api``; ``or``, the APIs of which any will do when none of that came to whom it is
    aimed at, and at last from clients (followers do not fetch while nobody leads); ``from``, who
    asks (``clients``, ``brokers``, ``controller`` or a node);
    ``part``; ``stir``, to end the ZooKeeper session of a broker that neither asks nor answers,
    or with ``leaders`` to have others lead, which gives a controller something to say; ``again_s``,
    how much later it is given more, another session or the former leaders; ``usurped``, to end that
    of the controller before the message is let go. ``ValueError`` when they make no sense.
    """
    part = options.get("part", "request")
    if part not in PARTS:
        raise ValueError(f"part = {part}: a message is a request or a response")
    what = f"hold-{part}" if fault == "hold-request" else fault
    asks = options.get("from", CLIENTS)
    nodes = await aim.resolve(cluster, targets, rng)
    message = None
    number = -1
    api, others = options["api"], options.get("or", ())
    rounds = [(asks, nodes, (api,)), (asks, cluster.brokers, (api, *others))]
    if others and asks != CLIENTS:
        rounds.append((CLIENTS, cluster.brokers, tuple(others)))
    for asking, answering, apis in rounds:
        links = await _links(cluster, asking, answering, rng)
        if not links:
            continue
        number = await cluster.meddle(links, apis, what)
        former = await _stir(cluster, options.get("stir", False), links[0], rng)
        message = await _caught(cluster, number)
        if message is not None:
            if "again_s" in options:
                await asyncio.sleep(float(options["again_s"]))
                await _stir(cluster, options.get("stir", False), links[0], rng, former)
            break
        await cluster.let_go(number)
    kept = _Caught(number, bool(options.get("usurped", False)))
    if message is None:
        return Applied(nodes, Effect(False, f"no {' or '.join((api, *others))} came"), None)
    return Applied(nodes, Effect(True, f"{message}: {_DONE[what]}"), kept)


async def heal(cluster: Meddled, applied: Applied) -> Effect:
    """Let it go; proved when it is not kept any more."""
    if applied.undo is None:
        return Effect(True, "nothing was caught")
    number, usurped = applied.undo
    held = await cluster.is_held(number)
    if usurped and held:
        controller = await cluster.controller()
        if controller is not None and await cluster.expire_session(controller):
            await asyncio.sleep(USURPED_S)
    await cluster.let_go(number)
    still = await cluster.is_held(number)
    return Effect(not still, "kept still" if still else "let go" if held else "nothing was kept")


class _Caught(NamedTuple):
    number: int
    usurped: bool


async def _stir(
    cluster: Meddled,
    how: Any,
    link: tuple[NodeId, NodeId],
    rng: random.Random,
    wishes: Mapping[str, NodeId] | None = None,
) -> dict[str, NodeId]:
    """Have partitions led by others, whom nobody names: who led them until then. Or, where that is
    not meant or none is, end the session of somebody else."""
    if how == "leaders":
        wishes = wishes or await admin.able(cluster, {}, rng, but=link[1:])
        led = {each.key: each.leader for each in await cluster.partitions()}
        shifted = await admin.shift(cluster, wishes)
        if shifted.led:
            return {key: leader for key in shifted.led if (leader := led[key]) is not None}
    if how:
        others = [node for node in cluster.brokers if node not in link]
        for node in rng.sample(others, len(others)):
            if await cluster.expire_session(node):
                break
    return {}


async def _links(
    cluster: Meddled, asks: str, answering: Sequence[NodeId], rng: random.Random
) -> list[tuple[NodeId, NodeId]]:
    if ZOOKEEPER in answering:
        raise ValueError("ZooKeeper speaks a protocol of its own: no message of its can be told")
    if asks == CLIENTS:
        askers: Sequence[NodeId] = (CLIENTS,)
    elif asks == "brokers":
        askers = cluster.brokers
    else:
        askers = await aim.resolve(cluster, asks if asks == aim.CONTROLLER else [asks], rng)
    return [(one, other) for other in answering for one in askers if one != other]


async def _caught(cluster: Meddled, number: int) -> str | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CATCH_S):
            while (message := await cluster.caught(number)) is None:  # noqa: ASYNC110 - it is seen from outside
                await asyncio.sleep(LOOK_EVERY_S)
            return message
    return await cluster.caught(number)


PACKAGE = Package(
    name="messages",
    faults=FAULTS,
    needs=(CanMeddle, CanExpire, CanAdminister, CanKill, CanPause, HasRoles),
    color="#f7b6d2",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
)
