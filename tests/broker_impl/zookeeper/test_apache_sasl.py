"""SASL with Apache ZooKeeper: our client at its server, and its shell at ours.

Skipped where the jars of Apache ZooKeeper are not available.
"""

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_impl.node import zk_acls
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.digest_md5 import Login
from broker_impl.zookeeper.errors import NoAuth
from tests.broker_impl.zookeeper import apache_zookeeper

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka]

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
PATH = "/config/users"


@pytest.fixture
def jaas(tmp_path: Path) -> Path:
    """A JAAS file for servers and clients, with the users bob and eve."""
    try:
        apache_zookeeper.folder()
    except apache_zookeeper.Absent as error:
        pytest.skip(str(error))
    path = tmp_path / "jaas.conf"
    path.write_text(
        f'Server {{ {MODULE} required user_bob="b-secret" user_eve="e-secret"; }};\n'
        f'Client {{ {MODULE} required username="bob" password="b-secret"; }};\n'
    )
    return path


def client(port: int, login: Login | None) -> ZooKeeper:
    return ZooKeeper(
        f"127.0.0.1:{port}",
        session_timeout_ms=5000,
        rng=random.Random(7),
        login=login,
        acl_of=zk_acls.acl_of,
    )


async def test_apaches_server_knows_our_client(tmp_path: Path, jaas: Path) -> None:
    """It gives our client its identity, and refuses others what the client's ACLs deny."""
    data = tmp_path / "data"
    data.mkdir()
    options = (
        f"-Djava.security.auth.login.config={jaas}",
        "-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    )
    with apache_zookeeper.server(data, options=options) as port:
        bob, eve = client(port, Login("bob", "b-secret")), client(port, Login("eve", "e-secret"))
        async with asyncio.timeout(60):
            await asyncio.gather(bob.start(), eve.start())
            await bob.ensure_path(PATH)
            assert (await bob.get(PATH))[0] == b""
            with pytest.raises(NoAuth):
                await eve.get(PATH)
        await asyncio.gather(bob.close(), eve.close())


@pytest.fixture
def ours(tmp_path: Path, jaas: Path) -> Iterator[int]:
    """Our server as a process, with the users of the file; returns its port."""
    argv = ("--listen", "127.0.0.1:0", "--data", str(tmp_path / "ours"), "--jaas", str(jaas))
    server = subprocess.Popen(
        [sys.executable, "-m", "broker_impl.zookeeper", *argv], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    yield int(server.stdout.readline().rpartition(":")[2])
    server.terminate()
    server.communicate()


async def test_our_server_knows_apaches_shell(jaas: Path, ours: int) -> None:
    """The shell reads as bob what only bob may read, and without a login it may not."""
    bob = client(ours, Login("bob", "b-secret"))
    await bob.start()
    await bob.ensure_path(PATH)
    await bob.set(PATH, b"only for bob")
    shell = ("-server", f"127.0.0.1:{ours}", "get", PATH)
    login = f"-Djava.security.auth.login.config={jaas}"
    with_it = await asyncio.to_thread(apache_zookeeper.shell, *shell, options=(login,))
    without = await asyncio.to_thread(apache_zookeeper.shell, *shell)
    await bob.close()
    assert "only for bob" in with_it
    assert "only for bob" not in without
    assert "Insufficient permission" in without or "NoAuth" in without
