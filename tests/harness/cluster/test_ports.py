"""Reserved ports refuse connections until a node listens on them."""

import socket
from collections.abc import Iterator

import pytest

from harness.cluster.ports import HOST, Ports


@pytest.fixture
def ports() -> Iterator[Ports]:
    with Ports() as held:
        yield held


def listening(port: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind((HOST, port))
    server.listen()
    return server


def test_connect_is_refused_while_nobody_listens(ports: Ports) -> None:
    """A reserved port of a dead node refuses connections."""
    port = ports.reserve()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port), timeout=1)


def test_node_listens_beside_the_reservation_again_and_again(ports: Ports) -> None:
    """Every connection reaches the node, also after it has closed and reopened its listener."""
    port = ports.reserve()
    for _ in range(3):
        with listening(port) as server:
            server.settimeout(1)
            for _ in range(5):
                with socket.create_connection((HOST, port), timeout=1) as client:
                    accepted, _ = server.accept()
                    client.sendall(b"x")
                    assert accepted.recv(1) == b"x"
                    accepted.close()  # before the client, so that TIME_WAIT is on this side
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port), timeout=1)


def test_stranger_cannot_bind_it(ports: Ports) -> None:
    """A process that does not set SO_REUSEPORT cannot bind a reserved port."""
    port = ports.reserve()
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            stranger.bind((HOST, port))


def test_reservations_differ_and_end_with_close(ports: Ports) -> None:
    """Two reservations never share a port, and after close a port is free again."""
    reserved = [ports.reserve() for _ in range(300)]
    assert len(set(reserved)) == 300
    ports.close()
    with socket.socket() as stranger:
        stranger.bind((HOST, reserved[0]))
