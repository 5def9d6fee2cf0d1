"""Who is linked to whom."""

from harness.cluster import links
from harness.cluster.links import Wanted
from model import roles

A, B = roles.broker(1), roles.broker(2)


def test_every_pair_that_talks_has_a_link() -> None:
    """Clients to brokers, brokers to each other and to ZooKeeper; a named client has its own."""
    assert sorted(links.between((A, B), ("alice",))) == sorted(
        [
            *(Wanted("clients", broker, "CLIENT") for broker in (A, B)),
            *(Wanted("clients-alice", broker, "CLIENT_ALICE") for broker in (A, B)),
            *(Wanted(A, B, "REPLICATION"), Wanted(B, A, "REPLICATION")),
            *(Wanted(broker, "zookeeper", "zookeeper") for broker in (A, B)),
        ]
    )


def test_the_harness_watches_every_node() -> None:
    """Its own links lead to what it asks: the clients' listeners, and ZooKeeper."""
    assert [wanted.acceptor for wanted in links.watching((A, B))] == ["zookeeper", A, B]
    assert {wanted.opener for wanted in links.watching((A, B))} == {links.HARNESS}
    assert links.listeners(("alice",)) == ("CLIENT", "CLIENT_ALICE", "REPLICATION")
