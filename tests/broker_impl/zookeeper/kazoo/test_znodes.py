"""kazoo's operations on znodes, each through a server that is not the one that wrote."""

import itertools
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import (
    CREATOR_ALL_ACL,
    OPEN_ACL_UNSAFE,
    READ_ACL_UNSAFE,
    make_acl,
    make_digest_acl,
)

from tests.broker_impl.zookeeper.kazoo.conftest import Connect, Ensemble

pytestmark = [pytest.mark.slow, pytest.mark.prove]


@pytest.mark.parametrize(
    ("ephemeral", "sequence", "include_data"), [*itertools.product([False, True], repeat=3)]
)
def test_create_modes(
    following: KazooClient,
    other: KazooClient,
    *,
    ephemeral: bool,
    sequence: bool,
    include_data: bool,
) -> None:
    """A node of every mode has its mode's name, owner and statistics at another server too."""
    made = following.create(
        "/a", b"data", ephemeral=ephemeral, sequence=sequence, include_data=include_data
    )
    path, stat = made if include_data else (made, following.exists(made))
    assert path == ("/a0000000000" if sequence else "/a")
    assert stat.ephemeralOwner == (following.client_id[0] if ephemeral else 0)
    other.sync("/")
    assert other.get(path) == (b"data", stat)
    assert other.get_children("/") == [path[1:]]


def test_makepath_creates_the_parents(following: KazooClient, other: KazooClient) -> None:
    """With makepath the missing parents are created; without it the node is refused."""
    with pytest.raises(NoNodeError):
        following.create("/a/b/c")
    assert following.create("/a/b/c", b"x", makepath=True) == "/a/b/c"
    assert following.create("/a/d/s-", makepath=True, sequence=True) == "/a/d/s-0000000000"
    other.sync("/")
    assert sorted(other.get_children("/a")) == ["b", "d"]
    assert other.get("/a/b")[0] == b""


def test_sequence_numbers_have_one_order(three: list[KazooClient]) -> None:
    """Numbers that clients of three servers request at once are all those from 0 to 59."""
    pending = [zk.create_async("/n-", sequence=True) for _ in range(20) for zk in three]
    numbers = [int(result.get()[-10:]) for result in pending]
    assert sorted(numbers) == list(range(60))
    assert [numbers[own::3] for own in range(3)] == [sorted(numbers[own::3]) for own in range(3)]


def test_sync_and_read_has_every_acknowledged_write(three: list[KazooClient]) -> None:
    """After a sync a client of any server reads what was acknowledged before at any other."""
    three[0].create("/a")
    for number, (writer, reader) in enumerate(itertools.permutations(three, 2)):
        writer.set("/a", b"%d" % number)
        assert reader.sync("/a") == "/a"
        data, stat = reader.get("/a")
        assert (data, stat.version) == (b"%d" % number, number + 1)


def test_sync_returns_its_path_also_for_a_missing_node(following: KazooClient) -> None:
    """A sync succeeds whether its node exists or not."""
    assert following.sync("/nothing/here") == "/nothing/here"


def test_versions(following: KazooClient, other: KazooClient) -> None:
    """A set or delete with another version than the node's is refused; -1 matches all."""
    following.create("/a", b"0")
    assert following.set("/a", b"1", version=0).version == 1
    with pytest.raises(BadVersionError):
        other.set("/a", b"2", version=0)
    with pytest.raises(BadVersionError):
        other.delete("/a", version=7)
    assert other.set("/a", b"2").version == 2
    other.delete("/a", version=2)
    following.sync("/")
    assert following.exists("/a") is None


def test_the_statistics_of_a_parent(three: list[KazooClient]) -> None:
    """At every server a parent counts the creations and deletions of its children, with the zxid
    of the last."""
    leading, following, _ = three
    leading.create("/a")
    following.sync("/")
    following.create("/a/b")
    leading.sync("/")
    leading.delete("/a/b")
    following.sync("/")
    _, created = following.create("/a/c", include_data=True)
    for zk in three:
        zk.sync("/")
        stat = zk.exists("/a")
        assert (stat.version, stat.cversion, stat.numChildren) == (0, 3, 1)
        assert (stat.pzxid, stat.mzxid) == (created.czxid, stat.czxid)


def test_refusals(following: KazooClient) -> None:
    """Each error of the leader reaches the follower's client as kazoo's exception for it."""
    following.create("/a/b", makepath=True)
    following.create("/e", ephemeral=True)
    refused: list[tuple[type[Exception], Callable[[], object]]] = [
        (NoNodeError, lambda: following.get("/no")),
        (NoNodeError, lambda: following.set("/no", b"")),
        (NoNodeError, lambda: following.delete("/no")),
        (NodeExistsError, lambda: following.create("/a")),
        (NotEmptyError, lambda: following.delete("/a")),
        (NoChildrenForEphemeralsError, lambda: following.create("/e/child")),
    ]
    for error, ask in refused:
        with pytest.raises(error):
            ask()
    following.delete("/a", recursive=True)
    assert following.get_children("/") == ["e"]


def test_a_large_node(following: KazooClient, other: KazooClient) -> None:
    """A megabyte less its request's head passes through the leader to every server."""
    data = bytes(range(256)) * 4000
    following.create("/large", data)
    other.sync("/")
    assert other.get("/large")[0] == data


def test_a_transaction_takes_effect_everywhere(following: KazooClient, other: KazooClient) -> None:
    """All operations of a transaction take effect, with one zxid."""
    following.create("/a", b"old")
    with following.transaction() as good:
        good.create("/b", b"x", ephemeral=True)
        good.create("/s-", sequence=True)
        good.set_data("/a", b"new", version=0)
        good.check("/a", version=1)
        good.create("/c")
        good.delete("/c", version=0)
    other.sync("/")
    assert sorted(other.get_children("/")) == ["a", "b", "s-0000000002"]
    data, stat = other.get("/a")
    assert (data, stat.version) == (b"new", 1)
    assert other.exists("/b").czxid == other.exists("/s-0000000002").czxid == stat.mzxid
    assert other.exists("/b").ephemeralOwner == following.client_id[0]


def test_the_results_of_a_transaction(following: KazooClient) -> None:
    """Each operation has its own result, without the client's chroot."""
    request = following.transaction()
    request.create("/a")
    request.create("/a/s-", sequence=True)
    request.set_data("/a", b"new")
    request.check("/a", version=1)
    request.delete("/a/s-0000000000")
    created, sequential, stat, checked, deleted = request.commit()
    assert (created, sequential, stat.version) == ("/a", "/a/s-0000000000", 1)
    assert (checked, deleted) == (True, True)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_failed_transaction_changes_nothing(
    following: KazooClient, other: KazooClient, position: int
) -> None:
    """The failed operation has its error, those before are rolled back, those after not tried."""
    following.create("/a", b"old")
    bad = following.transaction()
    for number in range(3):
        if number == position:
            bad.check("/a", version=7)
        else:
            bad.create(f"/new-{number}")
    results = bad.commit()
    kinds = [RolledBackError] * position + [BadVersionError]
    kinds += [RuntimeInconsistency] * (2 - position)
    assert [type(result) for result in results] == kinds
    other.sync("/")
    assert other.get_children("/") == ["a"]


def test_one_of_many_transactions_wins(three: list[KazooClient]) -> None:
    """Of transactions with one version that clients of three servers send, one takes effect."""
    three[0].create("/a")
    for zk in three:
        zk.sync("/")
    pending = []
    for number, zk in enumerate(three):
        request = zk.transaction()
        request.check("/a", version=0)
        request.set_data("/a", b"%d" % number)
        request.create(f"/winner-{number}")
        pending.append(request.commit_async())
    [winner] = [
        number
        for number, result in enumerate(pending)
        if not isinstance(result.get()[0], Exception)
    ]
    for zk in three:
        zk.sync("/")
        assert sorted(zk.get_children("/")) == ["a", f"winner-{winner}"]
        assert zk.get("/a")[0] == b"%d" % winner


def test_a_chroot(ensemble: Ensemble, connect: Connect, following: KazooClient) -> None:
    """A client with a chroot sees that path as its root, in results, watches and transactions."""
    following.ensure_path("/kafka/brokers")
    below = connect(ensemble.leader, chroot=f"{following.chroot}/kafka")
    below.sync("/")
    assert below.get_children("/") == ["brokers"]
    assert below.create("/brokers/id-", ephemeral=True, sequence=True) == "/brokers/id-0000000000"
    with below.transaction() as request:
        request.create("/topics")
    following.sync("/")
    assert sorted(following.get_children("/kafka")) == ["brokers", "topics"]
    assert following.get_children("/kafka/brokers") == ["id-0000000000"]


def test_a_chroot_that_does_not_exist_can_be_created(
    connect: Connect, leading: KazooClient
) -> None:
    """A client may begin below a path that does not exist yet."""
    below = connect(chroot=f"{leading.chroot}/new")
    with pytest.raises(NoNodeError):
        below.create("/a")
    below.ensure_path("/")
    assert below.create("/a") == "/a"
    leading.sync("/")
    assert leading.get_children("/new") == ["a"]


# Access control: a follower's client is identified at the follower, and refused by the leader.


def test_digest_acls(ensemble: Ensemble, connect: Connect, following: KazooClient) -> None:
    """Only clients with the right credentials may read, write, list, create below and delete."""
    owner = connect(ensemble.followers[1], auth_data=[("digest", "alice:secret")])
    owner.create("/by-auth", b"x", acl=CREATOR_ALL_ACL)
    owner.create("/by-digest", b"x", acl=[make_digest_acl("alice", "secret", all=True)])
    following.add_auth("digest", "alice:wrong")
    following.sync("/")
    for path in ("/by-auth", "/by-digest"):
        refused: list[Callable[[], object]] = [
            lambda path=path: following.get(path),  # type: ignore[misc]
            lambda path=path: following.set(path, b"y"),  # type: ignore[misc]
            lambda path=path: following.get_children(path),  # type: ignore[misc]
            lambda path=path: following.create(path + "/child"),  # type: ignore[misc]
            lambda path=path: following.set_acls(path, OPEN_ACL_UNSAFE),  # type: ignore[misc]
        ]
        for ask in refused:
            with pytest.raises(NoAuthError):
                ask()
        assert owner.get(path)[0] == b"x"
        assert owner.get_acls(path)[0] == [make_digest_acl("alice", "secret", all=True)]
    following.add_auth("digest", "alice:secret")
    following.set("/by-auth", b"y")
    assert following.get("/by-auth")[0] == b"y"


def test_a_digest_is_hidden_from_readers(
    ensemble: Ensemble, connect: Connect, following: KazooClient
) -> None:
    """A client that may read a node but not administer it does not see the digest."""
    owner = connect(ensemble.leader, auth_data=[("digest", "alice:secret")])
    acl = [make_digest_acl("alice", "secret", all=True), make_acl("world", "anyone", read=True)]
    owner.create("/a", acl=acl)
    following.sync("/")
    shown, _ = following.get_acls("/a")
    assert sorted(entry.id.id for entry in shown) == ["alice:x", "anyone"]
    assert owner.get_acls("/a")[0] == acl


def test_world_acls_grant_single_permissions(following: KazooClient, other: KazooClient) -> None:
    """A permission that an ACL does not grant is refused; the version of the ACL is checked."""
    following.create("/a", b"x", acl=READ_ACL_UNSAFE)
    other.sync("/")
    assert other.get("/a")[0] == b"x"
    with pytest.raises(NoAuthError):
        other.set("/a", b"y")
    following.create("/b")
    allowed = [make_acl("world", "anyone", read=True, write=True, admin=True)]
    with pytest.raises(BadVersionError):
        following.set_acls("/b", allowed, version=3)
    assert following.set_acls("/b", allowed, version=0).aversion == 1
    other.sync("/")
    assert other.get_acls("/b")[0] == allowed
    other.set("/b", b"z")
    with pytest.raises(NoAuthError):
        other.create("/b/child")
    request = other.transaction()
    request.create("/b/child")
    assert isinstance(request.commit()[0], NoAuthError)


def test_ip_acls(following: KazooClient, other: KazooClient) -> None:
    """An ACL of the scheme ip admits the addresses in its range and no others."""
    following.create("/near", b"x", acl=[make_acl("ip", "127.0.0.0/8", all=True)])
    following.create("/here", b"x", acl=[make_acl("ip", "127.0.0.1", all=True)])
    following.create("/far", b"x", acl=[make_acl("ip", "10.0.0.0/8", all=True)])
    other.sync("/")
    for path in ("/near", "/here"):
        other.set(path, b"y")
        assert other.get(path)[0] == b"y"
    with pytest.raises(NoAuthError):
        other.get("/far")
    with pytest.raises(NoAuthError):
        other.set("/far", b"y")
    with pytest.raises(InvalidACLError):
        following.create("/bad", acl=[make_acl("ip", "300.1.1.1", all=True)])


def test_invalid_acls_and_credentials(connect: Connect, following: KazooClient) -> None:
    """Unknown schemes and the scheme auth without credentials are refused."""
    for acl in ([make_acl("nonsense", "x", read=True)], CREATOR_ALL_ACL):
        with pytest.raises(InvalidACLError):
            following.create("/bad", acl=acl)
    with pytest.raises(AuthFailedError):
        connect().add_auth("nonsense", "x")
