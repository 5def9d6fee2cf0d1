"""Requests about delegation tokens and log directories, which a broker answers without either."""

from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from broker_impl.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from broker_impl.wire.messages.describe_delegation_token_request import (
    DescribeDelegationTokenRequest,
)
from broker_impl.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from broker_impl.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tests.broker_impl.node.broker_calls import create


@pytest.mark.parametrize(
    "request_type",
    [
        CreateDelegationTokenRequest,
        RenewDelegationTokenRequest,
        ExpireDelegationTokenRequest,
        DescribeDelegationTokenRequest,
    ],
)
async def test_tokens_are_refused_on_an_open_listener(cluster: Any, request_type: Any) -> None:
    """KIP-48: clients that are not authenticated cannot use tokens."""
    await cluster.add(1)
    for version in range(3):
        answer = await cluster.ask(1, request_type(), version)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def test_replicas_stay_in_the_only_directory(cluster: Any) -> None:
    """KIP-113: a replica can be assigned to where it is, and nowhere else."""
    running = await cluster.add(1)
    await cluster.ready()
    await create(cluster, replicas=1)
    here = running.broker.config.log_dirs
    wanted = [
        AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [0])])
        for path, topic in ((here, "t"), ("/elsewhere", "t"), (here, "u"))
    ]
    answer = await cluster.ask(1, AlterReplicaLogDirsRequest(wanted), 2)
    rows = [(topic.topic_name, row.error_code) for topic in answer.results
            for row in topic.partitions]  # fmt: skip
    assert rows == [
        ("t", ErrorCode.NONE),
        ("t", ErrorCode.LOG_DIR_NOT_FOUND),
        ("u", ErrorCode.REPLICA_NOT_AVAILABLE),
    ]
