"""SCRAM credentials that clients change, on a cluster in one event loop."""

import json
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import scram_users
from broker_impl.security import scram
from broker_impl.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from broker_impl.wire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SHA_256, SHA_512 = 1, 2
SALT = b"salt"


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> Any:
    return ScramCredentialUpsertion(name, mechanism, iterations, SALT, b"salted password")


async def alter(cluster: Any, *changes: Any) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    answer = await cluster.ask(1, request, 0)
    return {row.user: row.error_code for row in answer.results}


async def describe(cluster: Any, *names: str) -> list[tuple[str, int, list[tuple[int, int]]]]:
    users = [UserName(name) for name in names] or None
    answer = await cluster.ask(1, DescribeUserScramCredentialsRequest(users=users), 0)
    return [
        (row.user, row.error_code, [(i.mechanism, i.iterations) for i in row.credential_infos])
        for row in answer.results
    ]


async def test_credentials_are_stored_as_kafka_stores_them(cluster: Any) -> None:
    """A new credential is in the user's znode, in Kafka's format; deleting it leaves the others."""
    running = await cluster.add(1)
    await cluster.ready()
    assert await alter(cluster, upsertion("a b*"), upsertion("a b*", SHA_512, 8192)) == {"a b*": 0}
    assert await describe(cluster) == [("a b*", 0, [(SHA_256, 4096), (SHA_512, 8192)])]
    zk = running.broker._session.zk
    data, _ = await zk.get("/config/users/a%20b%2A")
    stored = json.loads(data)
    assert stored["version"] == 1
    expected = scram.credential("SCRAM-SHA-256", b"salted password", SALT, 4096)
    assert stored["config"]["SCRAM-SHA-256"] == expected.format()
    (change,) = await zk.children("/config/changes")
    data, _ = await zk.get(f"/config/changes/{change}")
    assert json.loads(data) == {"version": 2, "entity_path": "users/a%20b%2A"}
    assert await alter(cluster, ScramCredentialDeletion("a b*", SHA_256)) == {"a b*": 0}
    assert await describe(cluster, "a b*") == [("a b*", 0, [(SHA_512, 8192)])]


async def test_invalid_changes_are_refused(cluster: Any) -> None:
    """Each user's invalid change has Kafka's error, and the changes of others are made."""
    await cluster.add(1)
    await cluster.ready()
    errors = await alter(
        cluster,
        upsertion("good", iterations=16384),
        upsertion("few", iterations=4095),
        upsertion("many", iterations=16385),
        upsertion("odd", mechanism=3),
        upsertion(""),
        upsertion("twice"),
        upsertion("twice"),
        upsertion("mixed"),
        ScramCredentialDeletion("mixed", SHA_512),
        ScramCredentialDeletion("missing", SHA_256),
    )
    assert errors == {
        "good": 0,
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "odd": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
        "mixed": ErrorCode.RESOURCE_NOT_FOUND,
        "missing": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert await describe(cluster) == [("good", 0, [(SHA_256, 16384)])]
    assert await describe(cluster, "few") == [("few", ErrorCode.RESOURCE_NOT_FOUND, [])]
    assert await describe(cluster, "good", "good") == [("good", ErrorCode.DUPLICATE_RESOURCE, [])]


async def test_a_change_that_cannot_be_announced_is_not_made(cluster: Any) -> None:
    """A credential and the announcement of its change are written together, or neither is."""
    running = await cluster.add(1)
    await cluster.ready()
    zk = running.broker._session.zk
    assert await alter(cluster, upsertion("alice")) == {"alice": 0}
    for name in await zk.children("/config/changes"):
        await zk.delete(f"/config/changes/{name}")
    await zk.delete("/config/changes")
    change = ScramCredentialDeletion("alice", SHA_256)
    assert await alter(cluster, change) == {"alice": ErrorCode.REQUEST_TIMED_OUT}
    assert await describe(cluster) == [("alice", 0, [(SHA_256, 4096)])]
    await zk.create("/config/changes")
    assert await alter(cluster, change) == {"alice": 0}
    assert await describe(cluster) == []


async def test_a_user_without_a_znode_is_refused(cluster: Any) -> None:
    """A name that no znode can have is an error, and the broker goes on."""
    await cluster.add(1)
    await cluster.ready()
    assert await alter(cluster, upsertion(".."), upsertion("alice")) == {
        "..": ErrorCode.INVALID_REQUEST,
        "alice": 0,
    }


@pytest.mark.parametrize(
    ("user", "entity"),
    [("alice", "users/alice"), ("a b+c*~", "users/a%20b%2Bc%2A%7E"), ("ä/", "users/%C3%A4%2F")],
)
def test_names_are_encoded_as_kafka_encodes_them(user: str, entity: str) -> None:
    """The znode of a user has the name that Kafka's Sanitizer makes, and is read back."""
    assert scram_users.entity(user) == entity
    assert scram_users.user_of(entity.removeprefix("users/")) == user


def test_a_damaged_credential_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """A credential that cannot be read is logged and skipped; the user's others stay."""
    good = scram.credential("SCRAM-SHA-512", b"salted", SALT, 4096)
    settings = {
        "SCRAM-SHA-256": "salt=?",
        "SCRAM-SHA-512": good.format(),
        "producer_byte_rate": "1",
    }
    assert scram_users.credentials("alice", settings) == {"SCRAM-SHA-512": good}
    assert "the SCRAM-SHA-256 credential of user alice is not valid" in caplog.text
