"""The four-letter words and the configuration of an ensemble, as kazoo requests them."""

import queue

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadArgumentsError, NoAuthError, ReconfigDisabledError
from kazoo.protocol.states import EventType, WatchedEvent

from tests.broker_impl.zookeeper.kazoo.conftest import WAIT_S, Connect, Ensemble

pytestmark = [pytest.mark.slow, pytest.mark.prove]


def figures(zk: KazooClient, word: bytes, separator: str) -> dict[str, str]:
    """Return the answer to a word as keys and values."""
    lines = [line for line in zk.command(word).splitlines() if separator in line]
    return {key: value for key, _, value in (line.partition(separator) for line in lines)}


def test_each_server_names_its_role(three: list[KazooClient]) -> None:
    """One server leads and two follow, in the answers to srvr and to mntr."""
    roles = ["leader", "follower", "follower"]
    assert [figures(zk, b"srvr", ": ")["Mode"] for zk in three] == roles
    assert [figures(zk, b"mntr", "\t")["zk_server_state"] for zk in three] == roles
    assert figures(three[0], b"mntr", "\t")["zk_synced_followers"] == "2"


def test_words_of_every_server(three: list[KazooClient]) -> None:
    """Every server answers that it is well, writable, and which release it speaks."""
    for zk in three:
        assert zk.command() == "imok"
        assert zk.command(b"isro") == "rw"
        assert zk.server_version() == (3, 9, 3)
    ids = {figures(zk, b"conf", "=")["serverId"] for zk in three}
    assert ids == {"1", "2", "3"}


def test_words_count_the_same_znodes(three: list[KazooClient]) -> None:
    """All servers count the same nodes, sessions and ephemeral nodes once they are in step."""
    three[0].create("/e", ephemeral=True)
    for zk in three:
        zk.sync("/")
    keys = ("zk_znode_count", "zk_ephemerals_count")
    counted = [[figures(zk, b"mntr", "\t")[key] for key in keys] for zk in three]
    assert counted[0] == counted[1] == counted[2]
    assert counted[0][1] == "1"


def test_words_that_list_clients(following: KazooClient) -> None:
    """A client finds its session, its ephemeral nodes and its watches in the answers."""
    session = f"{following.client_id[0]:#x}"
    following.create("/e", ephemeral=True)
    following.exists("/e", watch=print)
    assert session in following.command(b"cons")
    dump = following.command(b"dump")
    assert session in dump
    assert f"{following.chroot}/e" in dump
    assert "Total watches:1" in following.command(b"wchs")
    assert "Clients:" in following.command(b"stat")


def test_membership_cannot_be_changed(following: KazooClient) -> None:
    """A reconfiguration is refused, as by a server whose reconfigEnabled is false."""
    with pytest.raises(ReconfigDisabledError):
        following.reconfig(joining="server.4=127.0.0.1:1:2;3", leaving=None, new_members=None)
    with pytest.raises(ReconfigDisabledError):
        following.reconfig(joining=None, leaving="1", new_members=None)
    assert following.create("/after") == "/after"


def test_the_members_are_listed_in_a_node(ensemble: Ensemble, connect: Connect) -> None:
    """Every server's node /zookeeper/config lists the members; a client may not write it."""
    for server in (1, 2, 3):
        zk = connect(server, chroot="")
        lines = zk.get("/zookeeper/config")[0].decode().splitlines()
        members = [f"server.{member}:participant" for member in ensemble.members]
        assert lines == [*members, "version=0"]
        with pytest.raises(NoAuthError):
            zk.set("/zookeeper/config", b"")


def test_zookeepers_own_nodes(connect: Connect) -> None:
    """The nodes of ZooKeeper exist, are listed below the root and cannot be deleted."""
    zk = connect(chroot="")
    assert "zookeeper" in zk.get_children("/")
    assert sorted(zk.get_children("/zookeeper")) == ["config", "quota"]
    with pytest.raises(BadArgumentsError):
        zk.delete("/zookeeper/quota")


def test_the_root_can_be_watched(connect: Connect) -> None:
    """A watch of the root's children fires for a node that another server's client creates."""
    zk, events = connect(chroot=""), queue.Queue[WatchedEvent]()
    zk.get_children("/", watch=events.put)
    connect(2, chroot="").create("/commands-test", ephemeral=True)
    event = events.get(timeout=WAIT_S)
    assert (event.type, event.path) == (EventType.CHILD, "/")
