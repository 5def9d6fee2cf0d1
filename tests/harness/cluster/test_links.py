"""Which nodes and clients have a link between them."""

from harness.cluster import links
from harness.cluster.links import LinkSpec
from model import roles
from model.layout import with_zookeeper

A, B = roles.broker(1), roles.broker(2)


def test_every_pair_that_talks_has_a_link() -> None:
    """Clients have links to brokers, brokers to each other and to ZooKeeper.

    A named client has links of its own.
    """
    assert sorted(links.between(with_zookeeper(2), ("alice",))) == sorted(
        [
            *(LinkSpec("clients", broker, "CLIENT") for broker in (A, B)),
            *(LinkSpec("clients-alice", broker, "CLIENT_ALICE") for broker in (A, B)),
            *(LinkSpec(A, B, "REPLICATION"), LinkSpec(B, A, "REPLICATION")),
            *(LinkSpec(broker, "zookeeper", "zookeeper") for broker in (A, B)),
        ]
    )


PROBED = {A: "CLIENT", B: "CLIENT", "zookeeper": "zookeeper"}


def test_the_harness_watches_every_node() -> None:
    """The harness has its own links, to the clients' listeners and to ZooKeeper."""
    assert [wanted.acceptor for wanted in links.watching(PROBED)] == [A, B, "zookeeper"]
    assert {wanted.opener for wanted in links.watching(PROBED)} == {links.HARNESS}
    assert links.listeners(("alice",)) == ("CLIENT", "CLIENT_ALICE", "REPLICATION")


def test_the_harness_has_a_second_link_to_a_protected_broker() -> None:
    """The listener that it probes first is not the one of clients then."""
    probed = {A: "HARNESS", "zookeeper": "zookeeper"}
    assert [*links.watching(probed, [A])] == [
        LinkSpec(links.HARNESS, A, "HARNESS"),
        LinkSpec(links.HARNESS, "zookeeper", "zookeeper"),
        LinkSpec(links.GUARDED, A, "CLIENT"),
    ]
