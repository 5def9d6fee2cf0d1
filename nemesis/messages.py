"""hold-request, drop-request, drop-response and others: a fault that affects one single message.

``hold-request`` holds one request of a named API on its way (with ``part = "response"``, one
response) and delivers it later, possibly when its sender has long given it up. What follows on the
same connection waits behind it. ``drop-response`` lets a request be processed and drops the
response together with the connection: the sender cannot know the result, and asks again.
``corrupt-request`` flips one bit of a request, as if a checksum on the way had missed it; a drawn
fault affects a Produce request, whose batches have checksums of their own.

``drop-request`` and ``duplicate-request`` are never drawn. The former loses a request together with
its connection, so that the broker does not receive it. The latter delivers a request twice on its
connection and keeps the second response from the client, as a faulty load balancer or proxy might.
Only some requests may be delivered twice without an effect that users can see: those of idempotent
producers (KIP-98), and those that set a value. A Produce of any other producer is appended twice.
"""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import CanAdminister, CanExpire, HasRoles
from model.capabilities.network import CanInterceptMessages, Interception, Selection
from model.capabilities.processes import CanKill, CanPause
from model.roles import CLIENTS, NodeId
from model.text import brief
from nemesis import admin
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options, Seconds
from nemesis.package import Applied, Cleanup, Effect, Environment, Fault, Package, has_brokers

PARTS = ("request", "response")
FOLLOWERS_SHARE = 1 / 3
"""The share of faults on periodic requests that catch one between brokers, if replicas follow."""
PERIODIC = "Fetch"
"""What followers request of leaders all the time."""
BETWEEN_BROKERS = (*[PERIODIC] * 4, "WriteTxnMarkers", "OffsetForLeaderEpoch")
"""The requests between brokers with their weights; the others need transactions or new leaders."""
LAST_RESORT = "Metadata"
"""The API that every client calls every few seconds."""
USUAL_ORDER = "LeaderAndIsr"
"""What a controller sends after every reason."""
ORDERS = (*[USUAL_ORDER] * 3, "UpdateMetadata", "StopReplica")
"""The controller requests with their weights: LeaderAndIsr carries more.

The controller sends UpdateMetadata equally often. StopReplica comes when a topic is deleted, a
replica is moved, or a broker shuts down; without these, another request is caught.
"""
REASONS = (True, "leaders")
"""What makes the controller send requests: the end of a broker's session, or new leaders."""
AGAIN_SHARE = 0.9
"""The share of held controller requests after which the same controller sends another."""
AGAIN_S = (0.05, 2.0)
"""The range of the time between the first reason and the other one."""
ORDERS_SHARE = 0.4
"""The share of draws that catch a controller's request, if there are three brokers.

The third broker provides the reason for the request.
"""
CORRUPT_SHARE = 0.1
"""The share of ``corrupt-request`` in the other draws."""
DROPPED_SHARE = 0.5
"""The share of ``drop-response`` for clients and followers; the other faults hold.

Controller requests have half this share.
"""
REPLACED_SHARE = 0.3
"""The share of held controller requests whose controller is replaced before they are delivered."""
REPLACED_S = 2.0
"""How long it may take to replace a controller and for the next one to send its requests."""
_DONE: Mapping[Interception, str] = {
    "hold-request": "the request is held",
    "hold-response": "the response is held",
    "drop-response": "the response is dropped",
    "corrupt-request": "one bit of the request is flipped",
    "drop-request": "the request is dropped",
    "duplicate-request": "the request is delivered twice",
}
RARE = frozenset({"WriteTxnMarkers", "OffsetForLeaderEpoch", "StopReplica"})
"""The drawn APIs of which there may be no request, so that another one is caught later."""
CATCH_S = 3.0
"""How long a fault waits for a message at its targets, and then again at any broker."""
LOOK_EVERY_S = 0.01
OVERHEAD_S = 2.5


class MessageOptions(
    Options,
    frozen=True,
    kw_only=True,
    rename={"alternatives": "or", "sender": "from", "provoke_orders": "stir"},
):
    """The options of every fault on a message."""

    api: str
    """The API of the request."""
    alternatives: list[str] = msgspec.field(default_factory=list)
    """Other APIs that will do as well when no message of ``api`` came to the targets.

    Finally they will do only from clients: followers do not fetch while there is no leader.
    """
    sender: str = CLIENTS
    """The sender of the request: ``clients``, ``brokers``, ``controller`` or a broker."""
    naming: str | None = None
    """A string in the request: a transactional id, a group, a topic or a member id.

    Newer versions of Fetch name topics by their ids only (KIP-516), which this does not find.
    """
    provoke_orders: Literal["leaders"] | bool = False
    """What makes a controller send a request.

    It is the end of the ZooKeeper session of a broker that neither sends nor answers the request
    or, with ``leaders``, the election of other leaders.
    """


class HoldOptions(
    MessageOptions, frozen=True, kw_only=True, rename={"replace_controller": "usurped"}
):
    """The options of ``hold-request``."""

    part: Literal["request", "response"] = "request"
    again_s: Seconds | None = None
    """How much later the controller gets another reason to send requests.

    It is another ended session, or the election of the former leaders.
    """
    replace_controller: bool = False
    """Does the controller's session end before the message is delivered?"""


class Intercepted(
    Cluster, CanInterceptMessages, CanExpire, CanAdminister, CanKill, CanPause, HasRoles, Protocol
):
    """The capabilities that this package uses; ``stir`` and ``usurped`` need :class:`CanExpire`."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one message to or from a broker, to be held for less or more than a session.

    A fault on a controller's request is drawn to be alone: if other brokers are down already, there
    is no broker left whose session could end to make the controller send one.
    """
    answered = [api for api in shape.asked if api != "Produce" or shape.acknowledged]
    api = rng.choice(answered)
    options: dict[str, Any] = {"api": api, "from": CLIENTS}
    options["or"] = [each for each in (*answered, LAST_RESORT) if each != api]
    if shape.intercepts_brokers:
        if rng.random() < FOLLOWERS_SHARE and min(shape.replicas, len(shape.brokers)) > 1:
            api = rng.choice(BETWEEN_BROKERS)
            others = [each for each in (PERIODIC, LAST_RESORT) if each != api]
            options = {"api": api, "from": "brokers", "or": others}
        if rng.random() < ORDERS_SHARE and len(shape.brokers) > 2:
            options = {"api": rng.choice(ORDERS), "from": aim.CONTROLLER}
            if options["api"] == "StopReplica":
                options["or"] = [USUAL_ORDER]
            options["stir"] = rng.choice(REASONS) if shape.replicas > 1 else True
    targets = aim.draw_broker(rng, shape)
    alone = "stir" in options
    overhead_s = OVERHEAD_S + (CATCH_S if options["api"] in RARE else 0.0)
    if not alone and rng.random() < CORRUPT_SHARE:
        options = {"api": "Produce", "from": CLIENTS}
        return Drawn("corrupt-request", 0.0, targets, options, overhead_s=OVERHEAD_S)
    if rng.random() < DROPPED_SHARE / (2 if alone else 1):
        return Drawn("drop-response", 0.0, targets, options, alone=alone, overhead_s=overhead_s)
    options["part"] = rng.choice(PARTS)
    duration_s = rng.uniform(0.1, 2.5) * shape.session_timeout_s
    if alone:
        # A controller's request is late once a later one has been obeyed.
        options["part"] = rng.choice(("request", "request", *PARTS))
        duration_s = rng.uniform(1.0, 4.0) * shape.session_timeout_s
        if options["part"] == "request" and rng.random() < REPLACED_SHARE:
            options["usurped"] = True
            overhead_s += REPLACED_S
        elif options["part"] == "request" and rng.random() < AGAIN_SHARE:
            low, high = AGAIN_S
            options["again_s"] = round(low * (high / low) ** rng.random(), 3)
            overhead_s += options["again_s"]
    return Drawn("hold-request", duration_s, targets, options, alone=alone, overhead_s=overhead_s)


async def apply(
    cluster: Intercepted, fault: str, targets: Any, options: MessageOptions, rng: random.Random
) -> Applied:
    """Catch one message; proved when one was caught.

    If none comes to the targets, a message to any broker will do, and in the end one of any client.
    """
    hold = options if isinstance(options, HoldOptions) else HoldOptions(api=options.api)
    what = _interception(fault, hold.part)
    asks = options.sender
    nodes = await aim.resolve(cluster, targets, rng)
    message = None
    number = -1
    api, others = options.api, options.alternatives
    rounds = [(asks, nodes, (api,)), (asks, cluster.brokers, (api, *others))]
    if others and asks != CLIENTS:
        rounds.append((CLIENTS, cluster.brokers, tuple(others)))
    for asking, answering, apis in rounds:
        links = await _links(cluster, asking, answering, rng)
        if not links:
            continue
        number = await cluster.intercept(links, Selection(apis, options.naming), what)
        former = await _provoke_orders(cluster, options.provoke_orders, links[0], rng)
        message = await _caught(cluster, number)
        if message is not None:
            if hold.again_s is not None:
                await asyncio.sleep(hold.again_s)
                await _provoke_orders(cluster, options.provoke_orders, links[0], rng, former)
            break
        await cluster.release(number)
    kept = _Caught(number, hold.replace_controller)
    if message is None:
        return Applied(nodes, Effect(False, f"no {' or '.join((api, *others))} came"), None)
    return Applied(nodes, Effect(True, f"{message}: {_DONE[what]}"), kept)


async def heal(cluster: Intercepted, applied: Applied) -> Effect:
    """Deliver the held message; proved when no message is held any more."""
    if applied.undo is None:
        return Effect(True, "no message was intercepted")
    number, replace_controller = applied.undo
    held = await cluster.is_held(number)
    if replace_controller and held:
        controller = await cluster.controller()
        if controller is not None and await cluster.expire_session(controller):
            await asyncio.sleep(REPLACED_S)
    await cluster.release(number)
    still = await cluster.is_held(number)
    return Effect(
        not still, "still held" if still else "released" if held else "no message was held"
    )


def _interception(fault: str, part: Literal["request", "response"]) -> Interception:
    match fault:
        case "drop-request" | "drop-response" | "corrupt-request" | "duplicate-request":
            return fault
        case _:
            return "hold-request" if part == "request" else "hold-response"


class _Caught(NamedTuple):
    number: int
    replace_controller: bool


async def _provoke_orders(
    cluster: Intercepted,
    how: Any,
    link: tuple[NodeId, NodeId],
    rng: random.Random,
    wishes: Mapping[str, NodeId] | None = None,
) -> dict[str, NodeId]:
    """Give the controller a reason to send requests; return former leaders of partitions.

    With ``leaders`` other leaders are elected: those in ``wishes`` or, without them, in-sync
    replicas except the broker that answers. If no election is requested or none succeeds, the
    session of a broker that is not at either end of the link is ended instead.
    """
    if how == "leaders":
        wishes = wishes or await admin.eligible(
            cluster, admin.PartitionOptions(), rng, excluding=link[1:]
        )
        led = {each.key: each.leader for each in await cluster.partitions()}
        shifted = await admin.shift(cluster, wishes)
        if shifted.led:
            return {key: leader for key in shifted.led if (leader := led.get(key)) is not None}
    if how:
        others = [node for node in cluster.brokers if node not in link]
        for node in rng.sample(others, len(others)):
            if await cluster.expire_session(node):
                break
    return {}


async def _links(
    cluster: Intercepted, asks: str, answering: Sequence[NodeId], rng: random.Random
) -> list[tuple[NodeId, NodeId]]:
    if asks == CLIENTS:
        askers: Sequence[NodeId] = (CLIENTS,)
    elif asks == "brokers":
        askers = cluster.brokers
    else:
        askers = await aim.resolve(cluster, asks if asks == aim.CONTROLLER else [asks], rng)
    return [(one, other) for other in answering for one in askers if one != other]


async def _caught(cluster: Intercepted, number: int) -> str | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CATCH_S):
            while (message := await cluster.caught(number)) is None:  # noqa: ASYNC110 - it is seen from outside
                await asyncio.sleep(LOOK_EVERY_S)
            return message
    return await cluster.caught(number)


def _refused(options: MessageOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse unknown names, and what the target cannot do."""
    return _unknown_names(options, environment) or _not_offered(options, environment)


def _not_offered(options: MessageOptions, environment: Environment) -> str | None:
    """Refuse to intercept messages, or to end sessions, that are out of the target's reach."""
    if options.sender != CLIENTS and not environment.kind.intercepts_brokers():
        return (
            f"from = {options.sender}: must be {CLIENTS}, because the target {environment.target}"
            " intercepts no messages of brokers"
        )
    if not issubclass(environment.kind, CanExpire):
        replaces = isinstance(options, HoldOptions) and options.replace_controller
        for name, given in (("stir", options.provoke_orders), ("usurped", replaces)):
            if given:
                return (
                    f"{name} = {str(given).lower()}: must be false, because the target"
                    f" {environment.target} cannot end the ZooKeeper session of a broker"
                )
    return None


def _unknown_names(options: MessageOptions, environment: Environment) -> str | None:
    """Refuse an API that does not exist, and a sender that sends no such request."""
    apis = environment.kind.apis()
    for name, given in (("api", [options.api]), ("or", options.alternatives)):
        if strange := [api for api in given if api not in apis]:
            return f"{name} = {brief(strange[0])}: must be an API ({', '.join(apis)})"
    senders = (CLIENTS, "brokers", aim.CONTROLLER, *environment.brokers)
    if options.sender in senders:
        return None
    return f"from = {brief(options.sender)}: must be {' or '.join(senders)}"


PACKAGE = Package(
    name="messages",
    suits=has_brokers,
    faults=(
        Fault("hold-request", HoldOptions, aim.BROKERS, _refused),
        Fault("drop-response", MessageOptions, aim.BROKERS, _refused),
        Fault("corrupt-request", MessageOptions, aim.BROKERS, _refused),
        Fault("drop-request", MessageOptions, aim.BROKERS, _refused, is_drawn=False),
        Fault("duplicate-request", MessageOptions, aim.BROKERS, _refused, is_drawn=False),
    ),
    needs=(CanInterceptMessages, CanAdminister, CanKill, CanPause, HasRoles),
    color="#f7b6d2",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(Cleanup("the held messages", cluster=lambda cluster: cluster.release_all()),),
)
