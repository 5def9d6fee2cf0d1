"""Unmodified client libraries and a broker process with TLS, SCRAM and ACLs."""

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from aiokafka.helpers import create_ssl_context
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from harness.cluster.authority import Authority
from tests.broker_impl.test_process import Site

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated interface
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    import kafka.errors

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

WAIT_S = 15
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORDS = {"root": "r-secret", "alice": "a-secret", "bob": "b-secret"}
DENIED = confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED


class Secured:
    """A broker process that serves SASL_SSL only: PLAIN for brokers and root, SCRAM for others."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.authority = Authority(site.folder)
        settings = {
            "listeners": "DOOR://127.0.0.1:0",
            "listener.security.protocol.map": "DOOR:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.door.plain.sasl.jaas.config": f"{PLAIN} username=broker "
            'password=x user_broker=x user_root="r-secret";',
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.authority.issue("broker")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.trust),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:broker;User:root",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "connection.failed.authentication.delay.ms": "0",
        }
        self.process = self.site.broker("broker", **settings)
        self.address = self.site.address("broker", "DOOR")
        self.admin = AdminClient(self.librdkafka("root"))
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            for user in ("alice", "bob"):
                password = PASSWORDS[user].encode()
                change = UserScramCredentialUpsertion(user, info, password)
                (done,) = self.admin.alter_user_scram_credentials([change]).values()
                done.result(WAIT_S)
        for user in ("alice", "bob"):
            self.allow(user, ResourceType.GROUP, "unused", AclOperation.READ)
        for name in ("orders", "secrets"):
            (done,) = self.admin.create_topics([NewTopic(name, 1, 1)]).values()
            done.result(WAIT_S)

    def librdkafka(self, user: str, **changed: Any) -> dict[str, Any]:
        """The settings of a client of librdkafka."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN" if user == "root" else "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": str(self.authority.trust),
            "log_level": 0,
        } | {name.replace("_", "."): value for name, value in changed.items()}

    def python(self, user: str) -> dict[str, Any]:
        """The settings of a client of aiokafka or kafka-python."""
        return {
            "bootstrap_servers": self.address,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": user,
            "sasl_plain_password": PASSWORDS[user],
            "ssl_context": create_ssl_context(cafile=str(self.authority.trust)),
        }

    def allow(self, user: str, kind: Any, name: str, *operations: Any) -> None:
        """Allow operations on a resource to a user."""
        bindings = [
            AclBinding(
                *(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*"),
                *(operation, AclPermissionType.ALLOW),
            )
            for operation in operations
        ]
        for done in self.admin.create_acls(bindings).values():
            done.result(WAIT_S)

    def revoke(self, user: str, kind: Any, name: str) -> int:
        """Take away all rights of a user on a resource; return how many entries there were."""
        every_host: Any = None  # the stub of confluent-kafka does not know that this means all
        wanted = AclBindingFilter(
            *(kind, name, ResourcePatternType.ANY, f"User:{user}", every_host),
            *(AclOperation.ANY, AclPermissionType.ANY),
        )
        (done,) = self.admin.delete_acls([wanted]).values()
        return len(done.result(WAIT_S))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    site = Site(tmp_path_factory.mktemp("secured"))
    try:
        yield Secured(site)
    finally:
        site.close()


def read(secured: Secured, user: str, topic: str) -> Any:
    """Read a topic to its end, committed records only; an error is returned."""
    consumer = confluent_kafka.Consumer(
        secured.librdkafka(user, group_id="unused", isolation_level="read_committed")
        | {"enable.partition.eof": True, "enable.auto.commit": False}
    )
    partition = confluent_kafka.TopicPartition(topic, 0, 0)
    consumer.assign([partition])
    values: list[bytes] = []
    try:
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, "no response"
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return values
            else:
                return error
    finally:
        consumer.close()


def until(client: Any, condition: Callable[[], bool], seen: list[str]) -> None:
    """Let a client report errors until a condition holds; ``seen`` is shown if it never does."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, seen
        client.poll(0.02)


def is_hidden(secured: Secured, user: str, topic: str) -> bool:
    """Whether the metadata of a topic are denied to a user, named or among all topics."""
    client = AdminClient(secured.librdkafka(user))
    error = client.list_topics(topic, timeout=WAIT_S).topics[topic].error
    is_listed = topic in client.list_topics(timeout=WAIT_S).topics
    assert is_listed is (error is None)
    return error is not None and error.code() == DENIED


def test_rights_are_needed_to_write_and_to_read(secured: Secured) -> None:
    """A producer and a reader get what their ACLs allow, and nothing else."""
    secured.allow("alice", ResourceType.TOPIC, "orders", AclOperation.WRITE)
    secured.allow("bob", ResourceType.TOPIC, "orders", AclOperation.READ)
    errors: dict[str, Any] = {}
    producer = confluent_kafka.Producer(secured.librdkafka("alice", enable_idempotence=True))
    for topic in ("orders", "secrets"):
        producer.produce(
            topic,
            b"value",
            partition=0,
            on_delivery=lambda error, m: errors.update({str(m.topic()): error}),
        )
    assert producer.flush(WAIT_S) == 0
    assert errors["orders"] is None
    assert errors["secrets"].code() == DENIED
    assert read(secured, "bob", "orders") == [b"value"]
    assert read(secured, "alice", "orders").code() == DENIED
    assert is_hidden(secured, "bob", "secrets")
    assert not is_hidden(secured, "bob", "orders")
    assert read(secured, "root", "secrets") == []  # a super user


def test_python_clients_use_groups(secured: Secured) -> None:
    """aiokafka and kafka-python write, read and commit as a group, by SCRAM-SHA-512 over TLS."""
    secured.allow("alice", ResourceType.TOPIC, "shared", AclOperation.ALL)
    secured.allow("alice", ResourceType.GROUP, "readers", AclOperation.READ)

    async def write_and_read() -> list[bytes]:
        settings = secured.python("alice")
        async with aiokafka.AIOKafkaProducer(**settings, acks="all") as producer:
            await producer.send_and_wait("shared", b"first")
        reader = aiokafka.AIOKafkaConsumer(
            "shared", **settings, group_id="readers", auto_offset_reset="earliest"
        )
        async with reader:
            message = await asyncio.wait_for(reader.getone(), WAIT_S)
            await reader.commit()
            refused = aiokafka.AIOKafkaConsumer("shared", **settings, group_id="others")
            with pytest.raises(aiokafka.errors.GroupAuthorizationFailedError):
                await refused.start()
            await refused.stop()
        return [message.value]

    assert asyncio.run(write_and_read()) == [b"first"]
    producer = kafka.KafkaProducer(**secured.python("alice"))
    producer.send("shared", b"second").get(WAIT_S)
    with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
        producer.send("secrets", b"value").get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer("shared", **secured.python("alice"), group_id="readers")
    assert next(consumer).value == b"second"
    consumer.close()


def test_a_right_that_is_taken_away_ends_a_transaction(secured: Secured) -> None:
    """A producer that loses its rights in a transaction is refused; no reader sees its records."""
    topic, name = "ledger", "payments"
    (done,) = secured.admin.create_topics([NewTopic(topic, 1, 1)]).values()
    done.result(WAIT_S)
    secured.allow("alice", ResourceType.TOPIC, topic, AclOperation.WRITE)
    secured.allow("alice", ResourceType.TRANSACTIONAL_ID, name, AclOperation.WRITE)
    secured.allow("bob", ResourceType.TOPIC, topic, AclOperation.READ)
    producer = confluent_kafka.Producer(
        secured.librdkafka("alice", transactional_id=name, transaction_timeout_ms=60_000)
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"committed", partition=0)
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"leaked", partition=0)
    assert producer.flush(WAIT_S) == 0
    assert secured.revoke("alice", ResourceType.TOPIC, topic) == 1
    errors: list[Any] = []
    producer.produce(topic, b"late", partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    assert [error.code() for error in errors] == [DENIED]
    assert secured.revoke("alice", ResourceType.TRANSACTIONAL_ID, name) == 1
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(WAIT_S)
    assert is_hidden(secured, "alice", topic)
    # The next owner of the transactional id, who has the rights, aborts what was left open.
    successor = confluent_kafka.Producer(secured.librdkafka("root", transactional_id=name))
    successor.init_transactions(WAIT_S)
    assert read(secured, "bob", topic) == [b"committed"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"sasl.password": "wrong"}, "_AUTHENTICATION"),
        ({"sasl.username": "carol"}, "_AUTHENTICATION"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "_ALL_BROKERS_DOWN"),
        ({"security.protocol": "PLAINTEXT"}, "_ALL_BROKERS_DOWN"),
        ({"security.protocol": "SSL"}, "_ALL_BROKERS_DOWN"),
        ({"ssl.ca.location": "other"}, "_SSL"),
    ],
)
def test_the_door_stays_closed(
    secured: Secured, changed: dict[str, str], code: str, tmp_path: Path
) -> None:
    """A wrong password, no TLS, no SASL, or an authority that the client does not trust."""
    seen: list[str] = []
    settings = secured.librdkafka("alice") | changed
    if "ssl.ca.location" in changed:
        settings["ssl.ca.location"] = str(Authority(tmp_path, "other").trust)
    settings["error_cb"] = lambda error: seen.append(error.name())
    client = AdminClient(settings)
    until(client, lambda: code in seen, seen)
    with pytest.raises(confluent_kafka.KafkaException):
        client.list_topics(timeout=0.05)


def test_an_expired_certificate_is_refused(secured: Secured) -> None:
    """A client that verifies certificates refuses an expired one; another client connects."""
    folder = secured.site.folder
    key = secured.authority.issue("expired", is_expired=True)
    process = secured.site.broker(
        "late",
        **{
            "broker.id": "7",
            "zookeeper.connect": f"127.0.0.1:{secured.site.zookeeper_port}/late",
            "log.dirs": str(folder / "late"),
            "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(key),
        },
    )
    settings: dict[str, Any] = {
        "bootstrap.servers": secured.site.address("late", "SSL"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(secured.authority.trust),
        "log_level": 0,
    }
    assert (
        len(
            AdminClient(settings | {"enable.ssl.certificate.verification": False})
            .list_topics(timeout=WAIT_S)
            .brokers
        )
        == 1
    )
    seen: list[str] = []
    client = AdminClient(settings | {"error_cb": lambda error: seen.append(error.str())})
    until(client, lambda: any("certificate verify failed" in text for text in seen), seen)
    process.kill()


def test_the_log_has_no_password(secured: Secured) -> None:
    """What a broker logs about its clients has no secret, and no unexpected error."""
    seen: list[str] = []
    wrong = secured.librdkafka("alice") | {"sasl.password": "wrong-secret"}
    client = AdminClient(wrong | {"error_cb": lambda error: seen.append(error.name())})
    until(client, lambda: "_AUTHENTICATION" in seen, seen)
    log = secured.site.log("broker")
    assert "invalid credentials" in log
    assert not any(secret in log for secret in (*PASSWORDS.values(), "wrong-secret"))
    assert "unexpected error" not in log
