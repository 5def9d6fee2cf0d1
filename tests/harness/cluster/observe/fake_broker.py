"""A scripted broker on a real socket: it answers what the test sets, in negotiated versions."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from broker_impl.wire.framing import decode_request_header, encode_response
from broker_impl.wire.messages import request_module, response_module
from broker_impl.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from harness.cluster.address import Address
from harness.cluster.ports import HOST

Answer = Callable[[int, Any], Any]
"""Returns the response to a request of this version; raising ``OSError`` closes the connection."""


class FakeBroker:
    """Lists ``versions`` in ApiVersions, and answers the APIs in ``answers``."""

    def __init__(self, versions: Mapping[int, range], answers: Mapping[int, Answer]) -> None:
        self.versions = {18: range(1), **versions}
        self.answers = dict(answers)
        self.features: dict[str, int] = {}
        self.asked: list[tuple[int, int, Any]] = []
        """Key, version and decoded body of each request."""
        self.frozen = False
        """While true, requests are read and not answered."""
        self.address = Address(HOST, 0)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port, or on the port that the broker had before."""
        self._server = await asyncio.start_server(self._connected, HOST, self.address.port)
        self.address = Address(HOST, self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening; new connections are refused."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def asked_for(self, key: int) -> list[tuple[int, Any]]:
        """Version and body of each request of one API."""
        return [(version, request) for api, version, request in self.asked if api == key]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        header, body = decode_request_header(memoryview(await reader.readexactly(size)))
        key, version = header.api_key, header.api_version
        request = request_module(key).decode(body, version)
        self.asked.append((key, version, request))
        if self.frozen:
            await reader.read()
        else:
            try:
                response = (
                    self._versions(version) if key == 18 else self.answers[key](version, request)
                )
                encoded = response_module(key).encode(response, version)
                writer.writelines(encode_response(key, version, header.correlation_id, encoded))
            except OSError:
                pass
        writer.close()

    def _versions(self, version: int) -> ApiVersionsResponse:
        response = ApiVersionsResponse(
            api_keys=[
                ApiVersion(key, one.start, one.stop - 1) for key, one in self.versions.items()
            ]
        )
        if version >= 3:
            response.finalized_features = [
                FinalizedFeatureKey(name, level, 1) for name, level in self.features.items()
            ]
        return response
