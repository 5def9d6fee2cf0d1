"""kazoo's sessions when servers, clients and connections end."""

import contextlib
import queue
import threading
import time
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoAuthError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL

from tests.broker_impl.zookeeper.kazoo.conftest import WAIT_S, Connect, Ensemble, abandon

pytestmark = [pytest.mark.slow, pytest.mark.prove]

ROLES = ["leader", "follower"]


@pytest.fixture
def server(ensemble: Ensemble, request: pytest.FixtureRequest) -> Iterator[int]:
    """The server that the test ends, of the role that is the parameter; it starts again."""
    server = ensemble.leader if request.param == "leader" else ensemble.followers[0]
    yield server
    ensemble.start(server)


def states_of(client: KazooClient) -> "queue.Queue[KazooState]":
    """Return a queue that gets the states of a client from now on."""
    states: queue.Queue[KazooState] = queue.Queue()
    client.add_listener(states.put)
    return states


def elsewhere(ensemble: Ensemble, connect: Connect, server: int) -> KazooClient:
    """Return a client at a follower that is not this server."""
    return connect(next(each for each in ensemble.followers if each != server))


@pytest.mark.parametrize("server", ROLES, indirect=True)
def test_a_session_moves_when_its_server_ends(
    ensemble: Ensemble, connect: Connect, server: int
) -> None:
    """The session and its ephemeral nodes survive, and the client goes on at another server."""
    owner = connect(server)
    witness = elsewhere(ensemble, connect, server)
    owner.create("/e", ephemeral=True)
    session, states = owner.client_id, states_of(owner)
    ensemble.kill(server)
    assert states.get(timeout=WAIT_S) == KazooState.SUSPENDED
    assert states.get(timeout=WAIT_S) == KazooState.CONNECTED
    assert owner.client_id == session
    assert ensemble.serving(owner) != server
    assert owner.retry(owner.create, "/after", makepath=True) == "/after"
    assert owner.exists("/e").ephemeralOwner == session[0]
    witness.retry(witness.sync, "/")
    assert witness.exists("/e").ephemeralOwner == session[0]
    owner.stop()
    witness.sync("/")
    assert witness.exists("/e") is None
    assert [states.get_nowait() for _ in range(states.qsize())] == [KazooState.LOST]


@pytest.mark.parametrize("server", ROLES, indirect=True)
def test_a_lock_is_held_while_its_server_ends(
    ensemble: Ensemble, connect: Connect, server: int
) -> None:
    """A lock stays with its owner, whose session moves; the next client waits for its release."""
    owner, rival = connect(server), elsewhere(ensemble, connect, server)
    held = owner.Lock("/lock")
    held.acquire()
    acquired = threading.Event()
    states = states_of(owner)

    def wait() -> None:
        with rival.Lock("/lock"):
            acquired.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    ensemble.kill(server)
    assert states.get(timeout=WAIT_S) == KazooState.SUSPENDED
    assert states.get(timeout=WAIT_S) == KazooState.CONNECTED
    owner.retry(owner.sync, "/")
    rival.retry(rival.sync, "/")
    assert not acquired.is_set()
    held.release()
    assert acquired.wait(WAIT_S)
    waiting.join(WAIT_S)


@pytest.mark.parametrize("server", ROLES, indirect=True)
def test_acknowledged_writes_survive_a_server(
    ensemble: Ensemble, connect: Connect, server: int
) -> None:
    """Of pipelined writes whose server ends, all that were acknowledged exist.

    The others fail with a loss of the connection, and each may exist or not.
    """
    writer, reader = connect(server), elsewhere(ensemble, connect, server)
    pending = [writer.create_async(f"/n-{number}") for number in range(2000)]
    pending[40].get(timeout=WAIT_S)
    ensemble.kill(server)
    outcomes = [each.exception for each in pending if each.wait(WAIT_S) is not False]
    acknowledged = {f"n-{number}" for number, error in enumerate(outcomes) if error is None}
    assert len(outcomes) == 2000
    assert {type(error) for error in outcomes} <= {type(None), ConnectionLoss}
    assert len(acknowledged) > 40
    reader.retry(reader.sync, "/")
    existing = reader.get_children("/")
    assert acknowledged <= set(existing)
    assert writer.retry(writer.create, "/again") == "/again"


@pytest.mark.parametrize("server", ["follower"], indirect=True)
def test_credentials_move_with_the_client(
    ensemble: Ensemble, connect: Connect, server: int
) -> None:
    """A client keeps its identity at the next server."""
    owner, stranger = connect(server), elsewhere(ensemble, connect, server)
    owner.add_auth("digest", "alice:secret")
    owner.create("/mine", b"x", acl=CREATOR_ALL_ACL)
    states = states_of(owner)
    ensemble.kill(server)
    assert states.get(timeout=WAIT_S) == KazooState.SUSPENDED
    assert states.get(timeout=WAIT_S) == KazooState.CONNECTED
    assert owner.retry(owner.set, "/mine", b"y").version == 1
    stranger.retry(stranger.sync, "/")
    with pytest.raises(NoAuthError):
        stranger.get("/mine")


def test_a_session_is_resumed_with_its_password(ensemble: Ensemble, connect: Connect) -> None:
    """A new client that has the id and the password of a session resumes it at any server."""
    first, second, third = (connect(server) for server in (1, 2, 3))
    first.create("/e", ephemeral=True)
    session = first.client_id
    abandon(first)
    for server in (2, 3, 1):
        heir = connect(server, client_id=session)
        assert heir.client_id == session
        assert ensemble.serving(heir) == server
        assert heir.exists("/e").ephemeralOwner == session[0]
        heir.create(f"/e-{server}", ephemeral=True)
        if server != 1:
            abandon(heir)
    second.sync("/")
    assert sorted(second.get_children("/")) == ["e", "e-1", "e-2", "e-3"]
    heir.stop()
    third.sync("/")
    assert third.get_children("/") == []


def test_a_wrong_password_does_not_resume_a_session(connect: Connect, ensemble: Ensemble) -> None:
    """A client with a wrong password gets a session of its own, and the other one is unharmed."""
    owner = connect(ensemble.leader)
    owner.create("/e", ephemeral=True)
    session = owner.client_id
    thief = connect(ensemble.followers[0], client_id=(session[0], b"x" * 16))
    assert thief.client_id[0] != session[0]
    thief.stop()
    assert owner.exists("/e").ephemeralOwner == session[0]
    assert owner.client_id == session


def test_an_unknown_session_is_not_resumed(connect: Connect) -> None:
    """A session that has ended is not resumed, not even with its password."""
    owner = connect(1)
    session = owner.client_id
    owner.stop()
    again = connect(2, client_id=session)
    assert again.client_id[0] != session[0]


def test_a_silent_session_expires(ensemble: Ensemble, connect: Connect) -> None:
    """The session of a client that died expires after its timeout, not before.

    Its ephemeral nodes go, with their watches at every server.
    """
    witnesses = [connect(server) for server in (1, 2, 3)]
    silent = connect(ensemble.followers[0], timeout=1.0)
    silent.create("/e", ephemeral=True)
    session = silent.client_id
    last_sign = time.monotonic()
    gone = [threading.Event() for _ in witnesses]
    for witness, event in zip(witnesses, gone, strict=True):
        witness.sync("/")
        assert witness.exists("/e", watch=lambda _, event=event: event.set())
    abandon(silent)
    assert all(event.wait(WAIT_S) for event in gone)
    assert time.monotonic() - last_sign > 0.9
    assert all(witness.exists("/e") is None for witness in witnesses)
    late = connect(ensemble.leader, client_id=session)
    assert late.client_id[0] != session[0]


def test_a_live_client_whose_session_expires(ensemble: Ensemble, connect: Connect) -> None:
    """The client is notified of the loss, gets a new session, and its recipes go on."""
    owner, writer = connect(ensemble.followers[0]), connect(ensemble.leader)
    owner.create("/e", ephemeral=True)
    data: queue.Queue[bytes | None] = queue.Queue()
    owner.DataWatch("/data", lambda value, stat: data.put(value))
    assert data.get(timeout=WAIT_S) is None
    session, states = owner.client_id, states_of(owner)
    connect(ensemble.followers[1], client_id=session).stop()
    seen = [states.get(timeout=WAIT_S)]
    while KazooState.LOST not in seen or seen[-1] != KazooState.CONNECTED:
        seen.append(states.get(timeout=WAIT_S))
    assert owner.client_id[0] != session[0]
    owner.sync("/")
    assert owner.exists("/e") is None
    writer.create("/data", b"new")
    assert data.get(timeout=WAIT_S) == b"new"


def test_a_request_of_an_expired_session_is_refused(connect: Connect, ensemble: Ensemble) -> None:
    """What a client requests while its session is lost fails, or is part of its new session."""
    owner = connect(ensemble.followers[0])
    session = owner.client_id
    lost = threading.Event()
    owner.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    connect(ensemble.followers[1], client_id=session).stop()
    while not lost.is_set():
        with contextlib.suppress(ConnectionLoss, SessionExpiredError):
            owner.create("/e-", ephemeral=True, sequence=True)
    owner.retry(owner.sync, "/")
    owners = {owner.exists(f"/{name}").ephemeralOwner for name in owner.get_children("/")}
    assert owners <= {owner.client_id[0]}


def test_without_a_majority_no_server_serves(ensemble: Ensemble, connect: Connect) -> None:
    """One server of three neither serves nor allows reads, and the session continues afterwards.

    Read-only mode is not offered, so a client that would accept it waits too.
    """
    last, leader = ensemble.followers[0], ensemble.leader
    others = [leader, ensemble.followers[1]]
    owner = connect(last, timeout=5.0, read_only=True)
    assert owner.client_state == KeeperState.CONNECTED
    owner.create("/e", ephemeral=True)
    session, states = owner.client_id, states_of(owner)
    ensemble.kill(*others)
    assert states.get(timeout=WAIT_S) == KazooState.SUSPENDED
    reader = KazooClient(ensemble.address(last), timeout=1.0, read_only=True)
    with pytest.raises(KazooTimeoutError):
        reader.start(timeout=0.5)
    assert ensemble.mode(last) == ""
    assert not owner.connected
    ensemble.start(*others)
    assert states.get(timeout=WAIT_S) == KazooState.CONNECTED
    assert owner.client_state == KeeperState.CONNECTED
    assert owner.client_id == session
    assert owner.exists("/e").ephemeralOwner == session[0]
    assert states.empty()
