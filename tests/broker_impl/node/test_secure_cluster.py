"""Brokers that talk over protected listeners, in one event loop; clients that may not come in."""

import asyncio
import random
import ssl
import struct
from pathlib import Path
from typing import Any

import pytest

from broker_impl.config import Login
from broker_impl.node import config_changes, scram_users
from broker_impl.node.peer_security import PeerSecurity
from broker_impl.node.peers import PeerError, Peers
from broker_impl.security import scram
from broker_impl.security.exchanges import client_side
from broker_impl.wire.framing import RequestHeader, encode_request
from broker_impl.wire.messages import request_module
from broker_impl.wire.messages.alter_configs_request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from broker_impl.wire.types import Buffer, TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.digest_md5 import ServerExchange
from broker_impl.zookeeper.errors import NoAuth
from harness.cluster.authority import Authority
from tests.broker_impl.conftest import ClusterInLoop

NO_LOGIN = Login("", "", {})
SALT = b"salt of a test"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def tls(authority: Authority) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("broker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trust),
    }


def protected(client: str, replication: str) -> dict[str, str]:
    return {
        "listener.security.protocol.map": f"CLIENT:{client},REPLICATION:{replication}",
        "connection.failed.authentication.delay.ms": "0",
    }


async def write_user(address: str, user: str, password: str) -> None:
    """Write a SCRAM credential into ZooKeeper, as Kafka's tool does before the brokers start."""
    zk = ZooKeeper(address, session_timeout_ms=2000, rng=random.Random(1), on_state=lambda _: None)
    await zk.start()
    await zk.ensure_path("/config/users")
    await zk.ensure_path("/config/changes")
    mechanism = "SCRAM-SHA-256"
    key = scram.salted(mechanism, password, SALT, 4096)
    text = scram.credential(mechanism, key, SALT, 4096).format()
    await config_changes.alter(zk, scram_users.entity(user), lambda _: {mechanism: text}, 0)
    await zk.close()


def connected(
    cluster: ClusterInLoop,
    context: ssl.SSLContext | None,
    mechanism: str | None = None,
    login: Login = NO_LOGIN,
) -> Peers:
    """A client of broker 1's first listener."""
    security = PeerSecurity(context, mechanism, login, lambda: "nonce-of-a-test")
    peers = Peers("test", {}, security)
    peers.update({1: ("127.0.0.1", cluster.brokers[1].port)})
    return peers


async def replicated(cluster: ClusterInLoop, peers: Peers) -> None:
    """Create a topic with a replica on every broker, which all join the ISR."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=len(cluster.brokers))
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    while (await peers.request(1, request, 5, timeout_s=10)).topics[0].error_code == 41:
        peers.update({1: ("127.0.0.1", cluster.brokers[2].port)})  # broker 2 is the controller
    tp = TopicPartition("t", 0)

    def is_replicated() -> bool:
        broker = cluster.brokers[1].broker
        assert broker is not None, "it was started"
        partition = broker.view.partition(tp)
        return partition is not None and len(partition.isr) == len(cluster.brokers)

    await cluster.until(is_replicated)


@pytest.mark.parametrize("kind", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
async def test_brokers_replicate_over_protected_listeners(
    cluster: ClusterInLoop, authority: Authority, kind: str
) -> None:
    """Brokers with certificates, with PLAIN and with SCRAM form a cluster and replicate."""
    cluster.inactive = protected("PLAINTEXT", kind)
    if kind != "SASL_PLAINTEXT":
        cluster.inactive |= tls(authority)
    if kind == "SSL":
        cluster.inactive["listener.name.replication.ssl.client.auth"] = "required"
    elif kind == "SASL_SSL":
        cluster.inactive |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "connections.max.reauth.ms": "2000",
            "listener.name.replication.plain.sasl.jaas.config": f"{PLAIN} username=broker "
            "password=b-secret user_broker=b-secret;",
        }
    else:
        await write_user(cluster.zookeeper.address, "broker", "b-secret")
        cluster.inactive |= {
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            "listener.name.replication.scram-sha-256.sasl.jaas.config": f"{SCRAM} "
            "username=broker password=b-secret;",
        }
    await asyncio.gather(cluster.add(1), cluster.add(2))
    await cluster.ready()
    peers = connected(cluster, None)
    await replicated(cluster, peers)
    peers.close()


async def test_a_client_needs_tls_and_a_certificate(
    cluster: ClusterInLoop, authority: Authority, tmp_path: Path
) -> None:
    """Only a client whose certificate is valid and signed by the authority is served."""
    cluster.inactive = protected("SSL", "PLAINTEXT") | tls(authority)
    cluster.inactive["ssl.client.auth"] = "required"
    await cluster.add(1)
    await cluster.ready()
    stranger = Authority(tmp_path, "stranger")

    async def outcome(context: ssl.SSLContext | None) -> Any:
        peers = connected(cluster, context)
        try:
            return await peers.request(1, MetadataRequest(topics=[]), 9, timeout_s=2)
        except PeerError as error:
            return error
        finally:
            peers.close()

    answer = await outcome(authority.client_context(authority.issue("alice")))
    assert [row.node_id for row in answer.brokers] == [1]
    expired = authority.issue("late", is_expired=True)
    foreign = authority.client_context(stranger.issue("eve"))
    for context in (None, authority.client_context(), authority.client_context(expired), foreign):
        assert isinstance(await outcome(context), PeerError)
    trusting_another = stranger.client_context(authority.issue("bob"))
    assert "CERTIFICATE_VERIFY_FAILED" in str(await outcome(trusting_another))


async def raw_exchange(port: int, user: str, password: str) -> bool:
    """Authenticate by SCRAM without SaslAuthenticate; returns whether requests are served then."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def sent(*parts: Buffer) -> bytes:
        data = b"".join(parts)
        writer.write(struct.pack(">i", len(data)) + data)
        return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

    async def asked(key: int, version: int, message: Any) -> bytes:
        body = request_module(key).encode(message, version)
        frame = b"".join(encode_request(RequestHeader(key, version, 7, "old"), body))
        return await sent(frame[4:])

    try:
        assert await asked(17, 0, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        exchange = client_side("SCRAM-SHA-256", Login(user, password, {}), "nonce-of-a-test")
        answer = b""
        while (token := exchange.next(answer)) is not None:
            answer = await sent(token)
        return len(await asked(3, 4, MetadataRequest(topics=[]))) > 8
    except asyncio.IncompleteReadError:
        return False
    finally:
        writer.close()


async def test_clients_that_send_tokens_without_headers(cluster: ClusterInLoop) -> None:
    """SaslHandshake v0: both sides' tokens alone authenticate, and a wrong one closes."""
    await write_user(cluster.zookeeper.address, "alice", "a-secret")
    cluster.inactive = protected("SASL_PLAINTEXT", "PLAINTEXT") | {
        "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    running = await cluster.add(1)
    await cluster.ready()
    assert await raw_exchange(running.port, "alice", "a-secret")
    assert not await raw_exchange(running.port, "alice", "b-secret")
    assert not await raw_exchange(running.port, "bob", "a-secret")


async def test_only_the_right_password_opens(cluster: ClusterInLoop) -> None:
    """Of users and mechanisms, only an enabled mechanism with the right password is served."""
    await write_user(cluster.zookeeper.address, "alice", "a-secret")
    cluster.inactive = protected("SASL_PLAINTEXT", "PLAINTEXT") | {
        "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    }
    await cluster.add(1)
    await cluster.ready()

    async def outcome(mechanism: str | None, user: str, password: str) -> str:
        peers = connected(cluster, None, mechanism, Login(user, password, {}))
        try:
            await peers.request(1, MetadataRequest(topics=[]), 9, timeout_s=5)
        except PeerError as error:
            return str(error)
        finally:
            peers.close()
        return "served"

    assert await outcome("SCRAM-SHA-256", "alice", "a-secret") == "served"
    assert "invalid credentials" in await outcome("SCRAM-SHA-256", "alice", "b-secret")
    assert "invalid credentials" in await outcome("SCRAM-SHA-256", "bob", "a-secret")
    assert "invalid credentials" in await outcome("SCRAM-SHA-512", "alice", "a-secret")
    assert "UNSUPPORTED_SASL_MECHANISM" in await outcome("PLAIN", "alice", "a-secret")
    assert "connection was lost" in await outcome(None, "", "")
    await write_user(cluster.zookeeper.address, "alice", "new-secret")
    while await outcome("SCRAM-SHA-256", "alice", "new-secret") != "served":
        pass
    assert "invalid credentials" in await outcome("SCRAM-SHA-256", "alice", "a-secret")


async def test_a_key_store_is_read_again(
    cluster: ClusterInLoop, authority: Authority, tmp_path: Path
) -> None:
    """New connections see the new certificate; an unusable key store is refused (KIP-226)."""
    store = tmp_path / "store.pem"
    cluster.inactive = protected("SSL", "SSL") | tls(authority)
    cluster.inactive["ssl.keystore.location"] = str(authority.issue("broker", to=store))
    await asyncio.gather(cluster.add(1), cluster.add(2))
    await cluster.ready()
    context = authority.client_context()
    first = connected(cluster, context)

    async def use(path: Path) -> int:
        rows = [
            AlterableConfig(f"listener.name.{name}.ssl.keystore.location", str(path))
            for name in ("client", "replication")
        ]
        request = AlterConfigsRequest(resources=[AlterConfigsResource(4, "1", rows)])
        answer = await first.request(1, request, 1, timeout_s=5)
        code: int = answer.responses[0].error_code
        return code

    async def is_served() -> bool:
        peers = connected(cluster, context)
        try:
            await peers.request(1, MetadataRequest(topics=[]), 9, timeout_s=5)
        except PeerError as error:
            return "CERTIFICATE_VERIFY_FAILED" not in str(error)
        finally:
            peers.close()
        return True

    assert await is_served()
    authority.issue("broker", to=store, is_expired=True)
    assert await is_served()  # nothing has asked the broker to read the file
    assert (await use(store), await is_served()) == (0, False)
    store.write_text("no key")
    assert (await use(store), await is_served()) == (42, False)  # INVALID_REQUEST
    assert (await use(tmp_path / "missing.pem"), await is_served()) == (42, False)
    authority.issue("broker", to=store)
    assert (await use(store), await is_served()) == (0, True)
    described = await first.request(
        1, DescribeConfigsRequest(resources=[DescribeConfigsResource(4, "1", None)]), 1, timeout_s=5
    )
    name = "listener.name.client.ssl.keystore.location"
    [row] = [each for each in described.results[0].configs if each.name == name]
    assert (row.value, row.config_source, row.read_only) == (str(store), 2, False)
    first.close()


async def test_only_brokers_may_change_their_znodes(cluster: ClusterInLoop) -> None:
    """With zookeeper.set.acl brokers authenticate, and form a cluster; other clients only read."""
    server = cluster.zookeeper.server
    assert server is not None
    server.logins = lambda: ServerExchange({"kafka": "z-secret"}, lambda: "nonce-of-a-test")
    cluster.inactive = {
        "zookeeper.set.acl": "true",
        "faultline.zookeeper.sasl.jaas.config": f"{DIGEST} username=kafka password=z-secret;",
    }
    await asyncio.gather(cluster.add(1), cluster.add(2))
    await cluster.ready()
    peers = connected(cluster, None)
    await replicated(cluster, peers)
    peers.close()
    zk = ZooKeeper(
        cluster.zookeeper.address,
        session_timeout_ms=2000,
        rng=random.Random(1),
        on_state=lambda _: None,
    )
    await zk.start()
    assert await zk.children("/brokers/topics") == ["t"]
    with pytest.raises(NoAuth):
        await zk.delete("/brokers/topics/t")
    with pytest.raises(NoAuth):
        await zk.set("/brokers/topics/t", b"{}")
    await zk.close()
