"""A name leads to the link of the node that asks, by the ports of a cluster of containers."""

import itertools

import pytest

from harness.cluster.address import Address
from harness.cluster.containers.doors import API_PORT, MESH, Doors
from harness.cluster.links import GUARDED, HARNESS, LinkSpec
from harness.cluster.node import ClusterError
from model.layout import with_kraft, with_zookeeper
from model.roles import CLIENTS, ZOOKEEPER

A, B = "broker-1", "broker-2"
CONTROLLER = "controller-1"
HOSTS = {MESH: "10.0.0.2", A: "10.0.0.3", B: "10.0.0.4"}
LAYOUT = with_kraft(2, 1, combined=True)
LISTENERS = {A: ("CLIENT", "REPLICATION", "CONTROLLER"), B: ("CLIENT", "REPLICATION")}
LINKS = [
    *(LinkSpec(HARNESS, broker, "CLIENT") for broker in (A, B)),
    *(LinkSpec(CLIENTS, broker, "CLIENT") for broker in (A, B)),
    *(LinkSpec(one, other, "REPLICATION", by_name=True) for one, other in ((A, B), (B, A))),
    LinkSpec(B, CONTROLLER, "CONTROLLER", by_name=True),
]


def published(doors: Doors) -> Doors:
    doors.publish({port: port + 10_000 for port in doors.inside})
    return doors


def test_no_two_listeners_and_no_two_links_share_a_port() -> None:
    """The redirection knows a listener by its port alone, and a link by its door."""
    doors = published(Doors(LAYOUT, LISTENERS, LINKS))
    listeners = [port for named in doors.ports.values() for port in named.values()]
    bound = [doors.endpoint(link).binds.port for link in LINKS]
    assert len({*listeners}) == 5
    assert len({*bound, API_PORT}) == len(LINKS) + 1 == len(doors.inside)


def test_a_name_leads_to_the_link_of_the_node_that_asks() -> None:
    """A rule for each link by name: from the opener's address and the listener's port to a door."""
    doors = published(Doors(LAYOUT, LISTENERS, LINKS))
    rules = doors.redirections(HOSTS)
    assert rules is not None
    for link in LINKS:
        port = doors.ports[LAYOUT.node_of(link.acceptor)][link.listener]
        door = doors.endpoint(link).binds.port
        rule = f"ip saddr {HOSTS.get(link.opener)} tcp dport {port} redirect to :{door}"
        assert (rule in rules) is link.by_name
    assert doors.endpoint(LINKS[-1]).inside == Address(CONTROLLER, doors.ports[A]["CONTROLLER"])


def test_a_node_knows_itself_and_reaches_others_through_toxiproxy_only() -> None:
    """Its own names have its own address, and all others that of Toxiproxy's container."""
    doors = Doors(LAYOUT, LISTENERS, LINKS)
    assert doors.names(B, HOSTS) == {
        MESH: "10.0.0.2",
        A: "10.0.0.2",
        CONTROLLER: "10.0.0.2",
        B: "10.0.0.4",
    }
    assert doors.names(A, HOSTS)[CONTROLLER] == "10.0.0.3", "its own controller"


def test_links_by_address_need_no_redirection() -> None:
    """This project's broker is configured with an address for each link."""
    layout = with_zookeeper(2)
    listeners = {A: ("CLIENT",), B: ("CLIENT",), ZOOKEEPER: (ZOOKEEPER,)}
    wanted = [LinkSpec(A, B, "CLIENT"), LinkSpec(A, ZOOKEEPER, ZOOKEEPER)]
    doors = published(Doors(layout, listeners, wanted))
    assert doors.redirections(HOSTS) is None
    for link in wanted:
        endpoint = doors.endpoint(link)
        assert endpoint.inside == Address(MESH, endpoint.binds.port)
        assert endpoint.outside == Address("127.0.0.1", endpoint.binds.port + 10_000)
    assert doors.names(A, {**HOSTS, ZOOKEEPER: "10.0.0.5"}) == {MESH: "10.0.0.2", A: "10.0.0.3"}


def test_the_harness_and_clients_at_fixed_ports_enter_at_published_ports() -> None:
    """The harness reaches a node past the faults; a user may choose the port of the clients."""
    doors = published(Doors(LAYOUT, LISTENERS, LINKS))
    harness, clients = LINKS[0], LINKS[2]
    assert doors.past(A) == doors.endpoint(harness).outside
    assert doors.of_clients({A: 29092}) == {doors.endpoint(clients).binds.port: 29092}
    assert doors.publish({port: port for port in doors.inside}) == Address("127.0.0.1", API_PORT)


def test_a_port_that_is_not_published_is_an_error() -> None:
    """An engine that publishes only some of the ports is a reason, not a KeyError later."""
    doors = Doors(LAYOUT, LISTENERS, LINKS)
    some = dict(itertools.islice(((port, port) for port in doors.inside), 3))
    with pytest.raises(ClusterError, match=r"did not publish port 20003"):
        doors.publish(some)


def test_a_protected_listener_has_a_port_of_its_own_past_all_faults() -> None:
    """The harness probes one listener, and logs in at the other one."""
    wanted = [LinkSpec(HARNESS, A, "HARNESS"), LinkSpec(GUARDED, A, "CLIENT")]
    doors = published(Doors(LAYOUT, {A: ("HARNESS", "CLIENT")}, wanted))
    assert doors.past(A) == doors.endpoint(wanted[0]).outside
    assert doors.past(A, guarded=True) == doors.endpoint(wanted[1]).outside
