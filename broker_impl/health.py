"""Health check of a container: ``python -m broker_impl.health kafka://host:port``.

It sends a broker an ApiVersions request, or a ZooKeeper server the ``ruok`` command. Exit status 0
if the answer is right, 1 otherwise, with one line that says why. Without an argument, it checks the
address in ``FAULTLINE_HEALTH``. It uses the standard library only, because it runs every few
seconds.
"""

import os
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import closing

TIMEOUT_S = 4.0
_CORRELATION = 0x0FA17
_CLIENT = b"health"


class Unwell(Exception):
    """The answer was wrong or missing."""


def api_versions_request() -> bytes:
    """An ApiVersions v0 request, framed."""
    header = struct.pack(">hhih", 18, 0, _CORRELATION, len(_CLIENT)) + _CLIENT
    return struct.pack(">i", len(header)) + header


def ask_kafka(connection: socket.socket) -> None:
    """Send a broker an ApiVersions request."""
    connection.sendall(api_versions_request())
    size, correlation, error = struct.unpack(">iih", _exactly(connection, 10))
    if size < 6 or correlation != _CORRELATION or error:
        raise Unwell(
            f"the response has {size} bytes, correlation id {correlation} and error {error}"
        )


def ask_zookeeper(connection: socket.socket) -> None:
    """Send ``ruok`` to a ZooKeeper server."""
    connection.sendall(b"ruok")
    if (answer := _exactly(connection, 4)) != b"imok":
        raise Unwell(f"the server answered {answer!r}")


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise Unwell(f"the server closed the connection after {len(data)} of {count} bytes")
        data += more
    return data


ASK: dict[str, Callable[[socket.socket], None]] = {
    "kafka": ask_kafka,
    "zookeeper": ask_zookeeper,
}


def main(arguments: Sequence[str], timeout_s: float = TIMEOUT_S) -> int:
    """Run one check, and return the exit status."""
    target = arguments[0] if arguments else os.environ.get("FAULTLINE_HEALTH", "")
    kind, _, address = target.partition("://")
    host, _, port = address.rpartition(":")
    if kind not in ASK or not host or not port.isdigit():
        sys.stderr.write(
            f"{target!r}: the target must be kafka://host:port or zookeeper://host:port\n"
        )
        return 1
    try:
        with closing(socket.create_connection((host, int(port)), timeout_s)) as connection:
            ASK[kind](connection)
    except (Unwell, OSError) as error:
        sys.stderr.write(f"{target}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
