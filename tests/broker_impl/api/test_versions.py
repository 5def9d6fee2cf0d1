"""What ApiVersions offers to clients, compared with a broker of Kafka 2.8."""

from typing import Any

import pytest

from broker_impl.api.table import APIS
from broker_impl.api.versions import NEWEST_OF_2_8
from broker_impl.node.peers import PeerError
from broker_impl.wire.messages.api_versions_request import ApiVersionsRequest
from broker_impl.wire.messages.list_transactions_request import ListTransactionsRequest
from broker_impl.wire.messages.update_features_request import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)

BETWEEN_BROKERS = {4, 5, 6, 7, 56}
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown and AlterIsr: Kafka offers them on
every listener, this broker on that of brokers, and it has no AlterIsr."""
OLDEST_HERE = {1: 4, 8: 1, 9: 1}
"""The oldest version of each API that this broker lacks older ones of; Kafka 2.8 has all from 0."""


async def offered(cluster: Any) -> dict[int, tuple[int, int]]:
    request = ApiVersionsRequest("a-client", "1.0")
    answer = await cluster.ask(1, request, 3)
    return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}


async def test_clients_can_be_offered_the_versions_of_kafka_2_8(cluster: Any) -> None:
    """The newest version of each API is that of Kafka 2.8, and no other API is offered."""
    await cluster.add(1, faultline_api_versions="2.8")
    expected = {
        key: (OLDEST_HERE.get(key, 0), newest)
        for key, newest in NEWEST_OF_2_8.items()
        if key not in BETWEEN_BROKERS
    }
    assert await offered(cluster) == expected
    for version in (0, 1):
        with pytest.raises(PeerError):
            await cluster.ask(1, ListTransactionsRequest(), version)
    answer = await cluster.ask(1, UpdateFeaturesRequest(1, [FeatureUpdateKey("f", 1)]), 0)
    assert [row.feature for row in answer.results if row.error_code] == ["f"]


async def test_clients_are_offered_all_versions_otherwise(cluster: Any) -> None:
    """Without the setting, newer versions and APIs are offered too."""
    await cluster.add(1)
    assert await offered(cluster) == {
        key: (row.advertised.start, row.advertised.stop - 1)
        for key, row in APIS.items()
        if not row.between_brokers
    }
    answer = await cluster.ask(1, ListTransactionsRequest(), 0)
    assert answer.error_code == 0
