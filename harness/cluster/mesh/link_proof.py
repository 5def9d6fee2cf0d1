"""Measures whether a link is cut, refused or slow, by probes and by Toxiproxy's counters.

A probe through a link proves nothing alone, because its acceptor may be silent. Each is therefore
paired with a probe that bypasses the link.
"""

import asyncio
from collections.abc import Sequence

from harness.cluster.mesh import counters
from harness.cluster.mesh.counters import Counters
from harness.cluster.mesh.toxiproxy import Link, Mesh
from harness.cluster.observe import probe
from harness.cluster.observe.probe import Protocol, Sign, protocol_of
from harness.cluster.polling import until

PROBE_TIMEOUT_S = 2.0
"""How long a healthy node may take to answer a probe past the mesh."""
ROUND_TRIP_S_MAX = 4.0
"""A link that answers later than this, plus the latency of faults, counts as cut."""
GRACE_S = 0.3
"""How much longer than the direct probe a probe through a link that is not slow may take."""
SLOWNESS_S_MAX = 6.0
"""A link slowed by more than this cannot be distinguished from a cut one in the available time."""
COUNTED_S = 1.0
"""How long Toxiproxy may take to notice that a probe's connection closed, and count its bytes."""
COUNTS = 2
"""How often to measure: another connection that ends just then can hide a probe's bytes."""


async def is_cut(mesh: Mesh, link: Link) -> bool | None:
    """Return whether a probe through the link was lost, but a later one past it was answered.

    Lost means that it was not answered, and that Toxiproxy counts bytes which it received and never
    sent. ``None`` if this cannot be decided. A link that another fault slows is given as much more
    time, unless that is too long.
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
    """Return whether a probe ended without an answer, and Toxiproxy reports the link as closed."""
    sign = await probe.sign(link.reached, _protocol(link), PROBE_TIMEOUT_S)
    return sign == "end" and await mesh.is_closed(link)


def round_trip_patience_s(slowness_s: float) -> float:
    """How long to wait for an answer over a link that faults slow by ``slowness_s``."""
    return max(ROUND_TRIP_S_MAX, slowness_s + PROBE_TIMEOUT_S)


async def round_trip_s(links: Sequence[Link], slowness_s: float = 0.0) -> float | None:
    """The quickest answer to a probe through any of the links; ``None`` if there is none.

    Faults slow a round trip over the links by ``slowness_s``.
    """
    clock = asyncio.get_running_loop().time
    patience_s = round_trip_patience_s(slowness_s)

    async def took(link: Link) -> float | None:
        began = clock()
        protocol = _protocol(link)
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
    """The outcome of a probe through the link; ``None`` if it says nothing about the link."""
    slowness_s = mesh.faults(link.opener, link.acceptor).slowness_s
    if slowness_s > SLOWNESS_S_MAX:
        return None
    protocol = _protocol(link)
    grace_s = GRACE_S + slowness_s
    through = asyncio.create_task(probe.sign(link.reached, protocol, PROBE_TIMEOUT_S + grace_s))
    try:
        if not await probe.answers(link.past, _protocol_past(link), PROBE_TIMEOUT_S):
            return None
        async with asyncio.timeout(grace_s):
            return await through
    except TimeoutError:
        return "silence"
    finally:
        through.cancel()


async def _was_swallowed(mesh: Mesh, link: Link, before: Counters) -> bool:
    """Return whether the link has lost at least a probe's request, or an answer."""
    asked = probe.request_bytes(_protocol(link))

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


def _protocol(link: Link) -> Protocol:
    """The protocol in which the acceptor of a link is probed."""
    return protocol_of(link.acceptor, has_tls=link.has_tls)


def _protocol_past(link: Link) -> Protocol:
    """The protocol in which the acceptor's node is probed past the link."""
    return protocol_of(link.node, has_tls=link.has_tls)
