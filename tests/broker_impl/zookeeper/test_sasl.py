"""Clients that authenticate by SASL at a server, and the znodes of brokers that do."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from broker_impl.node import zk_acls
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.digest_md5 import Login, ServerExchange
from broker_impl.zookeeper.errors import NoAuth
from broker_impl.zookeeper.records import OPEN_ACL, GetAclResponse, Op, PathRequest, Perm
from tests.broker_impl.zookeeper.conftest import Site

BROKER, OTHER = Login("broker", "b-secret"), Login("other", "o-secret")
SUPER = Login("super", "s-secret")
USERS = dict([BROKER, OTHER, SUPER])
USERS_PATH, TOPIC_PATH = "/config/users", "/brokers/topics"


@pytest.fixture
async def guarded(site: Site) -> AsyncIterator[Site]:
    """A server with users, and nodes that a broker has created with ACLs."""
    numbers = random.Random(5)
    site.server.logins = lambda: ServerExchange(USERS, lambda: str(numbers.random()))
    zk = client(site, BROKER, sets_acls=True)
    await zk.start()
    await zk.ensure_path(USERS_PATH)
    await zk.ensure_path(TOPIC_PATH)
    await zk.create(f"{USERS_PATH}/alice", b"secret")
    await zk.create(f"{TOPIC_PATH}/t", b"public")
    yield site
    await zk.close()


def client(site: Site, login: Login | None, *, sets_acls: bool = False) -> ZooKeeper:
    return ZooKeeper(
        f"127.0.0.1:{site.port}",
        session_timeout_ms=1000,
        rng=random.Random(1),
        login=login,
        acl_of=zk_acls.acl_of if sets_acls else lambda path: OPEN_ACL,
    )


@pytest.mark.parametrize("login", [OTHER, None])
async def test_only_brokers_change_their_znodes(guarded: Site, login: Login | None) -> None:
    """Others may read what is no credential, and may neither write nor create nor delete."""
    zk = client(guarded, login)
    await zk.start()
    assert (await zk.get(f"{TOPIC_PATH}/t"))[0] == b"public"
    for refused in (
        zk.get(f"{USERS_PATH}/alice"),
        zk.children(USERS_PATH),
        zk.set(f"{TOPIC_PATH}/t", b"changed"),
        zk.create(f"{TOPIC_PATH}/u"),
        zk.delete(f"{TOPIC_PATH}/t"),
    ):
        with pytest.raises(NoAuth):
            await refused
    await zk.close()


@pytest.mark.parametrize("login", [BROKER, SUPER])
async def test_brokers_and_the_super_user_may_do_everything(guarded: Site, login: Login) -> None:
    """Another session of the same user has its rights, and the user `super` those of every user."""
    zk = client(guarded, login)
    await zk.start()
    assert (await zk.get(f"{USERS_PATH}/alice"))[0] == b"secret"
    await zk.set(f"{TOPIC_PATH}/t", b"changed")
    await zk.delete(f"{USERS_PATH}/alice")
    await zk.close()


async def test_each_connection_authenticates(guarded: Site) -> None:
    """A session that returns over another connection has its identity there, too."""
    zk = client(guarded, BROKER)
    await zk.start()
    for connection in list(guarded.server.connections):
        connection.abort()
    while zk.connections < 2 or zk.state is not SessionState.CONNECTED:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.01)
    assert (await zk.get(f"{USERS_PATH}/alice"))[0] == b"secret"
    await zk.close()


async def test_a_wrong_password_gets_no_session(guarded: Site) -> None:
    """The server closes the connection, counts it, and the client tries again."""
    before = guarded.server.serving.rejected_identities
    zk = client(guarded, Login("broker", "wrong"))
    starting = asyncio.ensure_future(zk.start())
    while guarded.server.serving.rejected_identities < before + 2:  # noqa: ASYNC110 - a counter
        await asyncio.sleep(0.01)
    assert zk.state is SessionState.CONNECTING
    starting.cancel()
    await zk.close()


async def test_a_server_without_users_refuses_logins(site: Site) -> None:
    """The exchange ends with an error also for the empty user."""
    zk = client(site, Login("", ""))
    starting = asyncio.ensure_future(zk.start())
    while not site.server.serving.rejected_identities:  # noqa: ASYNC110 - a counter
        await asyncio.sleep(0.01)
    assert zk.state is SessionState.CONNECTING
    starting.cancel()
    await zk.close()


async def test_a_stored_acl_names_the_user(guarded: Site) -> None:
    """The ACL has the scheme sasl and the name of the user, as that of Kafka's brokers."""
    zk = client(guarded, BROKER)
    await zk.start()
    reply = await zk._call(Op.GET_ACL, PathRequest(f"{TOPIC_PATH}/t"))
    acl = {(entry.id.scheme, entry.id.id): entry.perms for entry in GetAclResponse.read(reply).acl}
    assert acl == {("sasl", "broker"): Perm.ALL, ("world", "anyone"): Perm.READ}
    await zk.close()
