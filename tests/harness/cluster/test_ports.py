"""Reserved ports refuse connections until a node listens on them; a subnet has one owner."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.cluster.ports import HOST, Ports, Subnet


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


def test_subnets_differ() -> None:
    """Two open subnets share no address."""
    with closing(Subnet()) as one, closing(Subnet()) as other:
        assert one.node(1) != other.node(1)
        assert one.link(1, 2) != other.link(1, 2)


def test_addresses_of_a_subnet_differ() -> None:
    """Each node and each ordered pair of nodes has an address of its own in 127.R."""
    with closing(Subnet()) as subnet:
        ends = range(1, 12)
        nodes = [subnet.node(end) for end in ends]
        proxies = [subnet.link(one, other) for one in ends for other in ends if one != other]
        assert len({*nodes, *proxies}) == len(nodes) + len(proxies)
        assert len({address.split(".")[1] for address in (*nodes, *proxies)}) == 1


def test_a_subnet_s_port_is_free_on_all_its_addresses() -> None:
    """The same port can be bound at once at the addresses of nodes and of proxies."""
    with closing(Subnet()) as subnet, socket.socket() as node, socket.socket() as proxy:
        port = subnet.port()
        node.bind((subnet.node(2), port))
        proxy.bind((subnet.link(1, 2), port))
        assert subnet.port() > port


def test_a_subnet_skips_the_port_of_a_wildcard_listener() -> None:
    """A program that listens on all addresses would also listen on those of the nodes."""
    with socket.socket() as stranger:
        stranger.bind(("0.0.0.0", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        with closing(Subnet(port)) as subnet:
            assert subnet.port() > port
    with closing(Subnet(port)) as subnet:
        assert subnet.port() == port, "the listener is gone"


def test_a_closed_subnet_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one number left, a second subnet is an error until the first is closed."""
    with closing(Subnet()) as subnet:
        number = int(subnet.node(1).split(".")[1])
    monkeypatch.setattr(Subnet, "_RANGE", range(number, number + 1))
    with closing(Subnet()), pytest.raises(OSError, match="no address 127"):
        Subnet()
    with closing(Subnet()) as again:
        assert again.node(1) == f"127.{number}.0.1"


def test_ports_of_a_subnet_end() -> None:
    """Beyond the last port a subnet raises, and does not search on."""
    with closing(Subnet(65_536)) as subnet, pytest.raises(OSError, match="no free port"):
        subnet.port()
