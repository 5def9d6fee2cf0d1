"""The bugs: what shows each of them, on which release, and from which release on it is gone."""

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import psutil

from bench.zookeeper_bugs.session import NoAnswer, Session
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    AddWatch,
    CreateRequest,
    Nothing,
    Op,
    PathVersion,
    PathWatch,
    SetDataRequest,
)
from harness.cluster.polling import until

PERSISTENT = 0
"""The mode of a persistent watch (``AddWatchMode``)."""
RECORD_BYTES_MAX = 2 * 0xFFFFF
"""The default of ``jute.maxbuffer`` and of what servers allow on top of it."""
IDLE_CORES_MAX = 0.12
"""A server without a leader that uses more of a core than this is busy."""
MEASURED_S = 6.0
WHOLE_S = 25.0
"""How long an ensemble may take until every server has a role again."""


class Story(NamedTuple):
    """A bug."""

    jira: str
    title: str
    what: str
    has_it: str
    """The system that has it."""
    has_not: tuple[str, ...]
    """Systems without it: a release that fixed it, and this project's."""
    is_shown: Callable[[Any], Awaitable[str | None]]
    """Returns what shows the bug on a cluster that has started; None if nothing does."""
    options: Mapping[str, Any] = {}
    """The options of the plan: how many servers there are."""


async def bare_check(cluster: Any) -> str | None:
    """Send ``check`` outside of a multi, restart the leader, and look whether it serves again."""
    leader = await _leader(cluster)
    session = await Session.open(cluster.direct(leader))
    with_answer = True
    try:
        await session.ask(Op.CREATE, CreateRequest("/checked", b"", OPEN_ACL, 0))
        await session.ask(Op.CHECK, PathVersion("/checked", -1))
    except NoAnswer:
        with_answer = False
    session.drop()
    if with_answer and await _is_whole_again(cluster):
        return None
    await cluster.kill(leader)
    await _started(cluster, leader)
    if await _is_whole_again(cluster):
        return None
    roles = await cluster.zookeepers()
    return f"{leader} led, was started again, and has the role {roles.get(leader, 'of none')}"


async def foreign_greeting(cluster: Any) -> str | None:
    """Greet every election port with an address of -1 bytes, and restart a follower."""
    for node in cluster.nodes:
        host, port = cluster.direct(node)[0], cluster.peer_port(node)
        _, writer = await asyncio.open_connection(host, port)
        writer.write(struct.pack(">qqi", -65536, 1, -1))
        writer.close()
    follower = max({*cluster.nodes} - {await _leader(cluster)})
    await cluster.kill(follower)
    await _started(cluster, follower)
    if await _is_whole_again(cluster):
        return None
    return f"{follower} was started again, and found no leader: no election port answers it"


async def watch_in_place_of_a_persistent_one(cluster: Any) -> str | None:
    """Set a persistent watch and then a one-shot watch on one node, and change the node twice."""
    session = await Session.open(cluster.direct(cluster.nodes[0]))
    await session.ask(Op.CREATE, CreateRequest("/watched", b"", OPEN_ACL, 0))
    await session.ask(Op.ADD_WATCH, AddWatch("/watched", PERSISTENT))
    await session.ask(Op.GET_DATA, PathWatch("/watched", True))
    for _ in range(3):
        await session.ask(Op.SET_DATA, SetDataRequest("/watched", b"x", -1))
    await session.ask(Op.GET_DATA, PathWatch("/watched", False))
    session.drop()
    events = len(session.events)
    return None if events >= 3 else f"three changes, and {events} notifications of them"


async def session_with_many_ephemerals(cluster: Any) -> str | None:
    """End a session whose ephemeral nodes have more bytes in their names than a packet may have."""
    name = "n" * 200
    count = RECORD_BYTES_MAX // len(name) + 500
    session = await Session.open(cluster.direct(await _leader(cluster)))
    creates = [
        (Op.CREATE, [CreateRequest(f"/{name}{number:06}", b"", OPEN_ACL, EPHEMERAL)])
        for number in range(count)
    ]
    for start in range(0, count, 500):
        await session.ask_all(creates[start : start + 500])
    with contextlib.suppress(NoAnswer):  # the cluster decides
        await session.ask(Op.CLOSE_SESSION, Nothing())
    session.drop()
    if await _is_whole_again(cluster) and await _accepts_writes(cluster):
        return None
    return f"after the end of a session with {count:,} ephemeral nodes no write is accepted"


async def observer_without_a_leader(cluster: Any) -> str | None:
    """Kill two of three voters and restart the third; measure how busy it and the observer are."""
    [observer] = cluster.layout.observers
    voters = {*cluster.nodes} - {observer}
    for _ in range(2):  # each leader: the observer takes part in another election each time
        leader = await _leader(cluster)
        voters.remove(leader)
        await cluster.kill(leader)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WHOLE_S if len(voters) > 1 else 4.0):
                while "leader" not in (await cluster.zookeepers()).values():  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
    [voter] = voters
    await cluster.kill(voter)
    starting = asyncio.create_task(_started(cluster, voter))
    await asyncio.sleep(4.0)
    processes = [psutil.Process(cluster.pid_of(node)) for node in (voter, observer)]
    before = [sum(process.cpu_times()[:2]) for process in processes]
    await asyncio.sleep(MEASURED_S)
    after = [sum(process.cpu_times()[:2]) for process in processes]
    starting.cancel()
    used = [(end - start) / MEASURED_S for start, end in zip(before, after, strict=True)]
    if min(used) < IDLE_CORES_MAX:
        return None
    return f"the voter uses {used[0]:.2f} cores and the observer {used[1]:.2f}, without an end"


async def _accepts_writes(cluster: Any) -> bool:
    for node in cluster.nodes:
        try:
            session = await Session.open(cluster.direct(node))
            error = await session.ask(Op.CREATE, CreateRequest(f"/by-{node}", b"", OPEN_ACL, 0))
        except NoAnswer:
            return False
        session.drop()
        if error:
            return False
    return True


async def _leader(cluster: Any) -> str:
    roles = await cluster.zookeepers()
    return str(next(node for node, role in roles.items() if role == "leader"))


async def _started(cluster: Any, node: str) -> None:
    """Start a node; it may end at once because of the bug."""
    try:
        await cluster.start_node(node)
    except Exception:  # noqa: BLE001 - the roles show whether it serves
        return


async def _is_whole_again(cluster: Any) -> bool:
    """Return whether every server has a role within the time, and keeps it for a moment."""
    try:
        async with asyncio.timeout(WHOLE_S):
            await until(cluster.is_whole, 0.5)
            await asyncio.sleep(2.0)
            return bool(await cluster.is_whole())
    except TimeoutError:
        return False


STORIES = (
    Story(
        "ZOOKEEPER-2186",
        "A greeting of unknown bytes ends the listener of an election port",
        "A server reads the size of an address from a connection to its election port and "
        "allocates so many bytes, also if the number is negative. The error ends the thread that "
        "accepts connections: the server goes on, but no other server can reach it for an "
        "election.",
        "apache-zookeeper:3.4.6",
        ("apache-zookeeper:3.4.14", "zookeeper"),
        foreign_greeting,
    ),
    Story(
        "ZOOKEEPER-2623",
        "A check outside of a multi makes a log that no server can read",
        "The operation check (13) belongs into a multi. A leader that receives it alone writes "
        "it to its log as a transaction of its own, which no server can apply: the followers "
        "leave their leader, and the leader cannot read its log when it starts again.",
        "apache-zookeeper:3.8.4",
        ("apache-zookeeper:3.9.3", "zookeeper"),
        bare_check,
    ),
    Story(
        "ZOOKEEPER-4466",
        "A one-shot watch replaces a persistent watch on the same node",
        "A client with a persistent watch on a node reads the node with a one-shot watch. The "
        "server keeps one mode for both: after the first change neither is left, and the client "
        "misses all changes that follow.",
        "apache-zookeeper:3.8.4",
        ("apache-zookeeper:3.9.3", "zookeeper"),
        watch_in_place_of_a_persistent_one,
    ),
    Story(
        "ZOOKEEPER-4306",
        "The end of a session with many ephemeral nodes stops the ensemble",
        "Since 3.6 the transaction that ends a session lists its ephemeral nodes. If their "
        "names are longer than a packet may be, no follower accepts the transaction: each "
        "leader that has it in its log loses its followers. 3.9.3 has the bug with its default "
        "settings.",
        "apache-zookeeper:3.9.3",
        ("zookeeper",),
        session_with_many_ephemerals,
    ),
    Story(
        "FINDING-27",
        "An observer and a voter that look for a leader answer each other without end",
        "A server that looks for a leader answers one that is in an earlier round, so that it "
        "catches up; and a voter answers every observer. If no quorum is there, the voter was "
        "started again and the observer was not, each answer causes another one. No issue is "
        "known; 3.9.3 has the bug.",
        "apache-zookeeper:3.9.3",
        ("zookeeper",),
        observer_without_a_leader,
        {"zookeepers": 4, "observers": 1},
    ),
)
