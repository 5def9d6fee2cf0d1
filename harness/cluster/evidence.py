"""What is measured of a link: is it cut, refused, or slow? By probes, and by Toxiproxy's counters.

A link alone proves nothing: silence may be its acceptor's. So each probe through a link goes with
one past it.
"""

import asyncio
from collections.abc import Sequence

from harness.cluster import counters, probe
from harness.cluster.counters import Counters
from harness.cluster.probe import Sign, protocol_of
from harness.cluster.toxiproxy import Link, Mesh
from harness.cluster.waiting import until

PROBE_TIMEOUT_S = 2.0
"""How long a node that is well may take to answer a probe past the mesh."""
ROUND_TRIP_S_MAX = 4.0
"""A link that takes longer to answer than this, and than faults slow it, is not slow but cut."""
GRACE_S = 0.3
"""How much longer than the direct one a probe through a link is waited for, if it is not slow."""
SLOWNESS_S_MAX = 6.0
"""A link that is made slower than this cannot be told from a cut one in the time there is."""
COUNTED_S = 1.0
"""How long Toxiproxy may take to see that a probe's connection was closed, and count its bytes."""
COUNTS = 2
"""Another connection that ends at the wrong moment can hide a probe's bytes; hardly twice."""


async def is_cut(mesh: Mesh, link: Link) -> bool | None:
    """Was a probe through the link swallowed although one past it, sent later, was answered?

    Swallowed: it was not answered, and Toxiproxy counts bytes that it took in and never passed on.
    ``None`` when there is no telling; a link that another fault slows is waited for as much longer,
    unless that is too long.
    """
    for _ in range(COUNTS):
        before = await mesh.counters()
        sign = await _sign_through(mesh, link)
        if sign is None:
            return None
        if sign == "answer":
            return False
        if await _was_swallowed(mesh, link, before):
            return True
    return None


async def is_refused(mesh: Mesh, link: Link) -> bool:
    """Did a probe end without an answer, and does the mesh say that this is its doing?"""
    sign = await probe.sign(link.reached, protocol_of(link.acceptor), PROBE_TIMEOUT_S)
    return sign == "end" and await mesh.is_closed(link)


def round_trip_patience_s(slowness_s: float) -> float:
    """How long an answer over a link is waited for that faults make slower by so many seconds."""
    return max(ROUND_TRIP_S_MAX, slowness_s + PROBE_TIMEOUT_S)


async def round_trip_s(links: Sequence[Link], slowness_s: float = 0.0) -> float | None:
    """The quickest answer to a probe through any of the links; ``None`` for no answer.

    Faults make a round trip over them slower by ``slowness_s``.
    """
    clock = asyncio.get_running_loop().time
    patience_s = round_trip_patience_s(slowness_s)

    async def took(link: Link) -> float | None:
        began = clock()
        protocol = protocol_of(link.acceptor)
        answered = await probe.answers(link.reached, protocol, patience_s)
        return clock() - began if answered else None

    probes = [asyncio.create_task(took(link)) for link in links]
    try:
        for first in asyncio.as_completed(probes):
            if (seconds := await first) is not None:
                return seconds
        return None
    finally:
        for task in probes:
            task.cancel()


async def _sign_through(mesh: Mesh, link: Link) -> Sign | None:
    """What comes of a probe through the link; ``None`` when that would tell nothing of it."""
    slowness_s = mesh.faults(link.opener, link.acceptor).slowness_s
    if slowness_s > SLOWNESS_S_MAX:
        return None
    protocol = protocol_of(link.acceptor)
    grace_s = GRACE_S + slowness_s
    through = asyncio.create_task(probe.sign(link.reached, protocol, PROBE_TIMEOUT_S + grace_s))
    try:
        if not await probe.answers(link.past, protocol, PROBE_TIMEOUT_S):
            return None
        async with asyncio.timeout(grace_s):
            return await through
    except TimeoutError:
        return "silence"
    finally:
        through.cancel()


async def _was_swallowed(mesh: Mesh, link: Link, before: Counters) -> bool:
    """Has the link taken in at least a probe's bytes, one way or the other, and kept them?"""
    asked = probe.request_bytes(protocol_of(link.acceptor))

    async def counted() -> bool:
        now = await mesh.counters()
        lost = counters.swallowed(before, now, link.name, "upstream")
        lost_back = counters.swallowed(before, now, link.name, "downstream")
        return lost >= asked or lost_back >= probe.ANSWER_BYTES_MIN

    try:
        async with asyncio.timeout(COUNTED_S):
            await until(counted)
    except TimeoutError:
        return False
    return True
