"""Layouts name the nodes of a cluster, those that keep its metadata, and the ends of links."""

import pytest

from model.layout import Layout, with_kraft, with_zookeeper

BROKERS = ("broker-1", "broker-2", "broker-3")


def test_one_zookeeper_has_no_number() -> None:
    """The only ZooKeeper server is called ``zookeeper``, and keeps the metadata."""
    layout = with_zookeeper(3)
    assert layout.brokers == BROKERS
    assert layout.zookeepers == layout.keepers == ("zookeeper",)
    assert layout.nodes == (*BROKERS, "zookeeper")
    assert (layout.controllers, layout.separate, layout.is_kraft) == ((), (), False)


def test_servers_of_an_ensemble_are_numbered() -> None:
    """The servers of an ensemble are nodes and keepers with numbers from 1."""
    layout = with_zookeeper(1, 3)
    servers = ("zookeeper-1", "zookeeper-2", "zookeeper-3")
    assert layout.keepers == servers
    assert layout.nodes == ("broker-1", *servers)
    ports = ("zookeeper-2", "zookeeper-2.quorum", "zookeeper-2.election")
    assert layout.ends_of("zookeeper-2") == ports, "servers reach each other at two ports"


def test_separate_controllers_are_nodes() -> None:
    """Controllers that are nodes of their own keep the metadata; brokers do not."""
    layout = with_kraft(2, 3, combined=False)
    controllers = ("controller-1", "controller-2", "controller-3")
    assert layout.is_kraft
    assert layout.controllers == layout.separate == layout.keepers == controllers
    assert layout.nodes == ("broker-1", "broker-2", *controllers)
    assert layout.node_of("controller-2") == "controller-2"
    assert layout.ends_of("broker-1") == ("broker-1",)
    assert layout.ends_of("controller-1") == ("controller-1",)


def test_combined_controllers_are_ends_but_not_nodes() -> None:
    """A combined controller is an end of links that belongs to the broker with its number."""
    layout = with_kraft(3, 2, combined=True)
    assert layout.is_kraft
    assert layout.separate == ()
    assert layout.keepers == ("broker-1", "broker-2"), "broker-3 has no controller"
    assert layout.nodes == BROKERS
    assert [layout.node_of(end) for end in layout.controllers] == ["broker-1", "broker-2"]
    assert layout.ends_of("broker-2") == ("broker-2", "controller-2")
    assert layout.ends_of("broker-3") == ("broker-3",)


@pytest.mark.parametrize(
    "layout",
    [
        with_zookeeper(3),
        with_zookeeper(2, 3),
        with_kraft(3, 3, combined=True),
        with_kraft(3, 1, combined=True),
        with_kraft(3, 1, combined=False),
    ],
)
def test_every_end_belongs_to_one_node(layout: Layout) -> None:
    """The ends of all nodes are the ends of the layout, and each leads back to its node."""
    ends = [end for node in layout.nodes for end in layout.ends_of(node)]
    assert len(set(ends)) == len(ends)
    assert {*layout.nodes, *layout.controllers} <= set(ends)
    assert all(end in layout.ends_of(layout.node_of(end)) for end in ends)
    assert set(layout.keepers) <= set(layout.nodes)


def test_other_names_belong_to_themselves() -> None:
    """Clients are ends of links and no nodes; they belong to themselves."""
    layout = with_kraft(1, 1, combined=True)
    assert layout.node_of("clients") == "clients"
    assert layout.ends_of("clients") == ("clients",)
