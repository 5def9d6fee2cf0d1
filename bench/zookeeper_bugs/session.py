"""A session that sends single requests to one server, also such that no library would send."""

import asyncio
from collections.abc import Sequence
from typing import Self

from broker_impl.zookeeper.jute import Reader, Record, frame
from broker_impl.zookeeper.records import (
    ConnectRequest,
    ConnectResponse,
    ReplyHeader,
    RequestHeader,
    WatcherEvent,
)
from harness.cluster.address import Address

TIMEOUT_MS = 8000
ANSWER_S = 5.0
"""How long an answer may take."""
_EVENT = -1
_SIZE_BYTES = 4


class NoAnswer(Exception):
    """The server has closed the connection, or has not answered in time."""


class Session:
    """One session over one connection, without heartbeats."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._xid = 0
        self.events: list[WatcherEvent] = []
        """The notifications that came before the latest answer."""

    @classmethod
    async def open(cls, server: Address) -> Self:
        """Open a session; raises NoAnswer."""
        try:
            session = cls(*await asyncio.open_connection(*server))
        except OSError as error:
            raise NoAnswer(f"{server}: {error!r}") from None
        try:
            async with asyncio.timeout(ANSWER_S):
                session._writer.write(frame(ConnectRequest(0, 0, TIMEOUT_MS, 0, bytes(16), False)))
                answer = ConnectResponse.read(Reader(await session._packet()))
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            session.drop()
            raise NoAnswer(f"{server}: {error!r}") from None
        if answer.timeout_ms <= 0:
            session.drop()
            raise NoAnswer(f"{server}: no session was granted")
        return session

    async def ask(self, op: int, *parts: Record) -> int:
        """Send a request, and return the error code of its answer; raises NoAnswer."""
        [error] = await self.ask_all([(op, parts)])
        return error

    async def ask_all(self, requests: Sequence[tuple[int, Sequence[Record]]]) -> list[int]:
        """Send requests at once, and return the error codes of their answers; raises NoAnswer."""
        first = self._xid + 1
        for op, parts in requests:
            self._xid += 1
            self._writer.write(frame(RequestHeader(self._xid, op), *parts))
        found: list[int] = []
        try:
            async with asyncio.timeout(ANSWER_S + len(requests) / 100):
                while len(found) < len(requests):
                    reader = Reader(await self._packet())
                    header = ReplyHeader.read(reader)
                    if header.xid == _EVENT:
                        self.events.append(WatcherEvent.read(reader))
                    elif header.xid >= first:
                        found.append(header.error)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise NoAnswer(repr(error)) from None
        return found

    def drop(self) -> None:
        """Close the connection; the session ends with its timeout."""
        self._writer.close()

    async def _packet(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(_SIZE_BYTES), "big")
        return await self._reader.readexactly(size)
