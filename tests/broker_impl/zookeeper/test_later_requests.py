"""Requests of later releases: containers, times to live, several reads at once, who a client is."""

import copy

import pytest

from broker_impl.zookeeper import state_stream
from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.jute import Reader
from broker_impl.zookeeper.records import (
    CONTAINER_FLAG,
    OPEN_ACL,
    TTL_FLAG,
    TTL_SEQUENTIAL_FLAG,
    Acl,
    AuthRequest,
    ClientInfo,
    Create2Response,
    CreateRequest,
    CreateTtlRequest,
    GetChildrenResponse,
    GetDataResponse,
    Id,
    MultiHeader,
    MultiReadRequest,
    MultiRequest,
    Nothing,
    Number,
    Op,
    PathVersion,
    PathWatch,
    RequestHeader,
    SetDataRequest,
    WhoAmIResponse,
)
from broker_impl.zookeeper.tree import CONTAINER, TTL_MS_MAX, is_session, ttl_of, with_ttl
from tests.broker_impl.zookeeper.test_pipeline import Client, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    client = Client(world)
    client.connect()
    return client


def container(path: str) -> CreateRequest:
    return CreateRequest(path, b"", OPEN_ACL, CONTAINER_FLAG)


def ttl(path: str, ttl_ms: int, flags: int = TTL_FLAG) -> CreateTtlRequest:
    return CreateTtlRequest(path, b"", OPEN_ACL, flags, ttl_ms)


def test_a_container_is_deleted_after_its_last_child(world: World, client: Client) -> None:
    """A container stays until it had a child and has none; a watcher learns of the end."""
    error, answer = client.ask(Op.CREATE_CONTAINER, container("/c"))
    assert (error, type(answer)) == (0, Create2Response)
    assert isinstance(answer, Create2Response)
    assert answer.stat.ephemeral_owner == 0, "as Apache's server shows it"
    assert world.pipeline.database.nodes["/c"].ephemeral_owner == CONTAINER
    for step in range(3):
        world.pipeline.delete_unused()
        world.pipeline.turn()
        assert "/c" in world.pipeline.database.nodes, step
        if step == 0:
            client.ask(Op.CREATE, CreateRequest("/c/x", b"", OPEN_ACL, 0))
    client.ask(Op.DELETE, PathVersion("/c/x", -1))
    client.ask(Op.EXISTS, PathWatch("/c", True))
    world.pipeline.delete_unused()
    world.pipeline.turn()
    assert "/c" not in world.pipeline.database.nodes
    assert client.events() == [(2, "/c")]
    assert world.pipeline.database.temporary == {}


def test_a_node_outlives_its_time_only_with_children_or_changes(
    world: World, client: Client
) -> None:
    """The time to live counts from the last change of the data, and while there is no child."""
    clock = world.pipeline._wall_ms()
    client.ask(Op.CREATE_TTL, ttl("/t", 500))
    client.ask(Op.CREATE_TTL, ttl("/u", 500))
    client.ask(Op.CREATE, CreateRequest("/u/x", b"", OPEN_ACL, 0))
    database = world.pipeline.database
    assert database.nodes["/t"].ephemeral_owner == with_ttl(500)
    assert database.unused(clock + 500) == []
    assert database.unused(clock + 501) == ["/t"]
    client.ask(Op.SET_DATA, SetDataRequest("/t", b"", -1))
    database.nodes["/t"].mtime = clock + 100
    assert database.unused(clock + 501) == []
    assert database.unused(clock + 700) == ["/t"]


def test_a_deletion_that_comes_too_late_is_refused(world: World, client: Client) -> None:
    """A child that was created meanwhile keeps a container, and so does another node's path."""
    client.ask(Op.CREATE_CONTAINER, container("/c"))
    client.ask(Op.CREATE, CreateRequest("/c/x", b"", OPEN_ACL, 0))
    client.ask(Op.DELETE, PathVersion("/c/x", -1))
    client.submit(Op.CREATE, CreateRequest("/c/y", b"", OPEN_ACL, 0))
    world.pipeline.delete_unused()
    world.pipeline.turn()
    assert "/c/y" in world.pipeline.database.nodes
    client.taken()
    client.ask(Op.DELETE, PathVersion("/c/y", -1))
    client.submit(Op.DELETE, PathVersion("/c", -1))
    client.submit(Op.CREATE, CreateRequest("/c", b"mine", OPEN_ACL, 0))
    world.pipeline.delete_unused()
    world.pipeline.turn()
    assert world.pipeline.database.nodes["/c"].data == b"mine"


@pytest.mark.parametrize("mode", ["follower", "observer"])
def test_a_learner_deletes_nothing(mode: str, world: World, client: Client) -> None:
    """Only the server that orders the writes decides that a container is unused."""
    client.ask(Op.CREATE_CONTAINER, container("/c"))
    client.ask(Op.CREATE, CreateRequest("/c/x", b"", OPEN_ACL, 0))
    client.ask(Op.DELETE, PathVersion("/c/x", -1))
    world.pipeline.mode = mode
    world.pipeline.delete_unused()
    world.pipeline.turn()
    assert "/c" in world.pipeline.database.nodes


def test_no_client_can_delete_as_the_server_does(world: World, client: Client) -> None:
    """The operation by which the server deletes containers is unknown to clients."""
    client.ask(Op.CREATE_CONTAINER, container("/c"))
    error, _ = client.ask(Op.DELETE_CONTAINER, None)
    assert error == Code.UNIMPLEMENTED
    assert "/c" in world.pipeline.database.nodes


@pytest.mark.parametrize(
    ("op", "request_"),
    [
        (Op.CREATE_CONTAINER, CreateRequest("/c", b"", OPEN_ACL, 0)),
        (Op.CREATE, container("/c")),
        (Op.CREATE_TTL, ttl("/c", 0)),
        (Op.CREATE_TTL, ttl("/c", -5)),
        (Op.CREATE_TTL, ttl("/c", TTL_MS_MAX + 1)),
        (Op.CREATE_TTL, ttl("/c", 100, flags=0)),
    ],
)
def test_flags_must_fit_the_operation(
    op: Op, request_: CreateRequest | CreateTtlRequest, client: Client
) -> None:
    """Flags of another kind of node, and times to live out of range, are bad arguments."""
    assert client.ask(op, request_)[0] == Code.BAD_ARGUMENTS


def test_a_sequential_node_with_a_time_to_live(client: Client) -> None:
    """Its name ends in the parent's counter."""
    _, answer = client.ask(Op.CREATE_TTL, ttl("/t-", 100, TTL_SEQUENTIAL_FLAG))
    assert isinstance(answer, Create2Response)
    assert answer.path == "/t-0000000000"


def test_owners_of_temporary_nodes_are_no_sessions() -> None:
    """The owner alone distinguishes a container and a time to live from a session."""
    for owner in (CONTAINER, with_ttl(1), with_ttl(TTL_MS_MAX)):
        assert not is_session(owner)
    assert ttl_of(with_ttl(12_345)) == 12_345
    assert ttl_of(CONTAINER) == ttl_of(0) == ttl_of(0x100000000000007) == 0


def test_temporary_nodes_survive_a_snapshot(world: World, client: Client) -> None:
    """A state that was read knows its containers and its nodes with a time to live."""
    client.ask(Op.CREATE_CONTAINER, container("/c"))
    client.ask(Op.CREATE_TTL, ttl("/t", 500))
    database = world.pipeline.database
    reader = state_stream.StateReader(database.last_zxid)
    reader.receive(state_stream.encode_state(database))
    assert reader.database.temporary == {"/c": None, "/t": None}
    assert copy.copy(reader.database.ephemerals) == {}


def test_a_multi_may_contain_them(client: Client) -> None:
    """Containers and nodes with a time to live are created in a multi, with their Stat."""
    parts = ((Op.CREATE_CONTAINER, container("/c")), (Op.CREATE_TTL, ttl("/c/t", 500)))
    error, answer = client.ask(Op.MULTI, MultiRequest(parts))
    assert error == 0
    reader = Reader(answer.encode())
    for op in (Op.CREATE_CONTAINER, Op.CREATE_TTL):
        assert MultiHeader.read(reader) == MultiHeader(op, False, 0)
        assert Create2Response.read(reader).path in ("/c", "/c/t")


def test_several_reads_have_results_of_their_own(client: Client) -> None:
    """A read that fails does not keep the others from being answered (ZOOKEEPER-1407)."""
    client.ask(Op.CREATE, CreateRequest("/a", b"1", OPEN_ACL, 0))
    secret = (Acl(31, Id("digest", "x:y")),)
    client.ask(Op.CREATE, CreateRequest("/s", b"1", secret, 0))
    reads = MultiReadRequest(
        (
            (Op.GET_DATA, PathWatch("/a", False)),
            (Op.GET_CHILDREN, PathWatch("/none", False)),
            (Op.GET_DATA, PathWatch("/s", False)),
            (Op.GET_CHILDREN, PathWatch("/", False)),
        )
    )
    assert MultiReadRequest.read(Reader(reads.encode())) == reads
    error, answer = client.ask(Op.MULTI_READ, reads)
    assert error == 0
    reader = Reader(answer.encode())
    assert MultiHeader.read(reader) == MultiHeader(Op.GET_DATA, False, 0)
    assert GetDataResponse.read(reader).data == b"1"
    for code in (Code.NO_NODE, Code.NO_AUTH):
        assert MultiHeader.read(reader) == MultiHeader(Op.ERROR, False, code)
        assert Number.read(reader).value == code
    assert MultiHeader.read(reader) == MultiHeader(Op.GET_CHILDREN, False, 0)
    assert set(GetChildrenResponse.read(reader).children) == {"a", "s", "zookeeper"}
    assert MultiHeader.read(reader).done
    assert reader.remaining == 0


def test_a_client_learns_who_it_is(world: World, client: Client) -> None:
    """whoAmI lists the identities of the connection, of a digest only the user."""
    assert client.ask(Op.WHO_AM_I, Nothing()) == (
        0, WhoAmIResponse((ClientInfo("ip", "127.0.0.1"),))
    )  # fmt: skip
    world.pipeline.submit(client, RequestHeader(-4, Op.AUTH), AuthRequest(0, "digest", b"bob:pw"))
    client.taken()
    _, answer = client.ask(Op.WHO_AM_I, Nothing())
    assert isinstance(answer, WhoAmIResponse)
    assert answer.identities[1] == ClientInfo("digest", "bob")
