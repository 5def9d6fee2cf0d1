"""The HTTP listener that serves a broker's metrics, in the broker's own event loop.

It answers ``GET /metrics`` in Prometheus' text format and closes the connection. A response is made
in pieces of few samples, and other work of the loop runs in between, so that the requests of
clients wait for one piece at most. One response is made at a time, and few may wait for theirs.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from broker_impl.config import parse_address
from broker_impl.node.metrics.families import all_families
from broker_impl.node.metrics.source import Source

LOG = logging.getLogger(__name__)

_HEAD_BYTES: Final = 8192
_IN_TIME_S: Final = 10.0
"""How long a client may take to send its request and to read the response."""
_CLIENTS_MAX: Final = 16
_SAMPLES_MAX: Final = 100
"""The samples that are rendered in one turn of the loop: about half a millisecond."""
_HEAD_LINES: Final = 2
"""A family's text begins with its help and its type."""

_Answer = tuple[str, bytes]
"""The status and the body."""


class _Part:
    """A collector of some samples of one family."""

    def __init__(self, family: Metric, samples: Sequence[Sample]) -> None:
        self._family = Metric(family.name, family.documentation, family.type)
        self._family.samples = list(samples)

    def collect(self) -> Iterator[Metric]:
        """Return the family, as the library expects it."""
        yield self._family


def pieces(family: Metric, samples_max: int = _SAMPLES_MAX) -> Iterator[bytes]:
    """The text of a family in pieces of at most ``samples_max`` samples; the first has the head."""
    for start in range(0, len(family.samples) or 1, samples_max):
        text = generate_latest(_Part(family, family.samples[start : start + samples_max]))
        yield text.split(b"\n", _HEAD_LINES)[_HEAD_LINES] if start else text


class Endpoint:
    """Serves the metrics of one broker."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._clients = 0
        self._turn = asyncio.Lock()

    async def text(self) -> bytes:
        """All metrics in the text format; other work of the loop runs between two pieces."""
        async with self._turn:
            parts = []
            for family in all_families(self._source):
                for piece in pieces(family):
                    parts.append(piece)
                    await asyncio.sleep(0)
        return b"".join(parts)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        if self._clients >= _CLIENTS_MAX:
            writer.transport.abort()
            return
        self._clients += 1
        try:
            async with asyncio.timeout(_IN_TIME_S):
                head = await reader.readuntil(b"\r\n\r\n")
                method, *rest = head.split(b"\r\n", 1)[0].split()
                status, body = await self._answer(method, rest[0] if rest else b"")
                writer.write(_response(status, b"" if method == b"HEAD" else body, len(body)))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, ValueError, EOFError, asyncio.LimitOverrunError) as error:
            LOG.info("a request for metrics was not answered: %r", error)
        finally:
            self._clients -= 1
            writer.transport.abort()

    async def _answer(self, method: bytes, target: bytes) -> _Answer:
        if method not in (b"GET", b"HEAD"):
            return "405 Method Not Allowed", b"only GET and HEAD are supported\n"
        if target.split(b"?", 1)[0] != b"/metrics":
            return "404 Not Found", b"the metrics are at /metrics\n"
        return "200 OK", await self.text()


def _response(status: str, body: bytes, length: int) -> bytes:
    is_found = status.startswith("200")
    kind = CONTENT_TYPE_PLAIN_0_0_4 if is_found else "text/plain; charset=utf-8"
    allow = "Allow: GET, HEAD\r\n" if status.startswith("405") else ""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n"
        f"{allow}Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


@asynccontextmanager
async def serving(source: Source, address: str) -> AsyncIterator[int]:
    """Serve metrics at ``host:port`` until the block ends; gives the port. OSError: it is taken."""
    host, port = parse_address(address, "faultline.metrics.listener")
    endpoint = Endpoint(source)
    server = await asyncio.start_server(endpoint.serve, host.strip("[]"), port, limit=_HEAD_BYTES)
    bound = int(server.sockets[0].getsockname()[1])
    LOG.info("metrics are at http://%s:%d/metrics", host, bound)
    try:
        yield bound
    finally:
        server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await server.wait_closed()
