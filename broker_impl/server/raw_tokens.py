"""Tokens without headers, which clients send after SaslHandshake v0 (before KIP-152).

Each frame is a token then, until the client is authenticated. It is handled as the SaslAuthenticate
request that later clients send in its place.
"""

import struct
from typing import Any, Final

from broker_impl.wire.framing import RequestHeader
from broker_impl.wire.types import Buffer

_AUTHENTICATE: Final = 36
_SIZE: Final = struct.Struct(">i")


def request(frame: memoryview) -> tuple[RequestHeader, memoryview]:
    """Return the header and the body of the request that a token stands for."""
    header = RequestHeader(_AUTHENTICATE, 0, 0, None)
    return header, memoryview(_SIZE.pack(len(frame)) + frame)


def response(answer: Any) -> list[Buffer]:
    """Return what is sent for the response to such a request: its token, with its size.

    After a failure nothing is sent, because there is no place for an error: the connection closes.
    """
    if answer.error_code:
        return []
    return [_SIZE.pack(len(answer.auth_bytes)), answer.auth_bytes]
