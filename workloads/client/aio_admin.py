"""The administrative requests of a process: each with an admin client of aiokafka of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, NoError, for_code
from aiokafka.protocol.admin import DeleteRecordsRequest

from workloads.client import aio_errors, outcome
from workloads.client.aio_closing import end_start, stop_client
from workloads.client.aio_errors import its_assertions, name_of
from workloads.client.common import DELETION_TIMEOUT_S, QUERY_TIMEOUT_S


@asynccontextmanager
async def _administering(common: Mapping[str, Any]) -> AsyncIterator[AIOKafkaAdminClient]:
    """Yield a started admin client, for one request.

    Raises ``KafkaError``, and ``TimeoutError`` if start and request exceed the time limit.
    """
    admin = AIOKafkaAdminClient(**common, request_timeout_ms=int(QUERY_TIMEOUT_S * 1000))
    starting = asyncio.ensure_future(admin.start())
    try:
        async with asyncio.timeout(QUERY_TIMEOUT_S):
            with its_assertions():
                await asyncio.shield(starting)
                yield admin
    finally:
        await end_start(starting)
        await stop_client(admin.close, admin._client.close)


async def create(common: Mapping[str, Any], new: NewTopic) -> tuple[outcome.Outcome, str | None]:
    """Create a topic; return the outcome and the name of the error."""
    # Nothing is sent until the client has found the controller.
    in_doubt: Literal["fail", "info"] = "fail"
    try:
        async with _administering(common) as admin:
            if admin._client.cluster.controller is None:
                return "fail", "NoController"  # aiokafka would ignore that it is unknown
            in_doubt = "info"
            answer = await admin.create_topics([new])
    except (KafkaError, TimeoutError) as error:
        return in_doubt, name_of(error)
    ((_, code, *_),) = answer.topic_errors
    answered = for_code(code)
    return aio_errors.of_creation(answered), None if answered is NoError else answered.__name__


async def delete_records(
    common: Mapping[str, Any], partition: TopicPartition, offset: int
) -> tuple[outcome.Outcome, int | None, str | None]:
    """Delete all records before an offset, with one DeleteRecords request.

    Returns the outcome, the low watermark of all replicas, and the name of the error.
    """
    is_asked = False
    try:
        async with _administering(common) as admin:
            admin._client.cluster.update_metadata(await admin._get_cluster_metadata())
            leader = admin._client.cluster.leader_for_partition(partition)
            if leader is None or leader < 0:
                return "fail", None, "LeaderNotAvailableError"
            is_asked = True
            places = [(partition.topic, [(partition.partition, offset)])]
            request = DeleteRecordsRequest(places, int(DELETION_TIMEOUT_S * 1000))
            answer = await admin._client.send(leader, request)
    except (KafkaError, TimeoutError) as error:
        return "info" if is_asked else "fail", None, name_of(error)
    (((_, ((_, low, code, *_),), *_)),) = answer.topics
    refused = for_code(code)
    if refused is not NoError:
        return aio_errors.of_records_deletion(refused()), None, refused.__name__
    return "ok", int(low), None


async def delete_topic(common: Mapping[str, Any], topic: str) -> tuple[outcome.Outcome, str | None]:
    """Delete a topic; return the outcome and the name of the error."""
    in_doubt: Literal["fail", "info"] = "fail"
    try:
        async with _administering(common) as admin:
            if admin._client.cluster.controller is None:
                return "fail", "NoController"
            in_doubt = "info"
            answer = await admin.delete_topics([topic], int(DELETION_TIMEOUT_S * 1000))
    except (KafkaError, TimeoutError) as error:
        return in_doubt, name_of(error)
    ((_, code, *_),) = answer.topic_error_codes
    answered = for_code(code)
    return aio_errors.of_topic_deletion(
        answered
    ), None if answered is NoError else answered.__name__


async def alter_topic(
    common: Mapping[str, Any], topic: str, settings: Mapping[str, str]
) -> str | None:
    """Change these settings of a topic; return the name of the error, if any."""
    try:
        async with _administering(common) as admin:
            asked = ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))
            [answer] = await admin.alter_configs([asked])
    except (KafkaError, TimeoutError) as error:
        return name_of(error)
    ((code, *_),) = answer.resources
    return None if code == NoError.errno else str(for_code(code).__name__)
