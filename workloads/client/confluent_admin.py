"""The administrative requests of a process: blocking calls of librdkafka's admin client."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from workloads.client.common import DELETION_TIMEOUT_S, QUERY_TIMEOUT_S


def create(config: Mapping[str, Any], new: NewTopic) -> str | None:
    """Create a topic; return the name of the error, if any."""
    admin = AdminClient(dict(config))
    (created,) = admin.create_topics(
        [new], operation_timeout=QUERY_TIMEOUT_S, request_timeout=QUERY_TIMEOUT_S
    ).values()
    try:
        created.result()
    except KafkaException as error:
        name: str = error.args[0].name()
        return name
    return None


def delete_records(
    config: Mapping[str, Any], place: TopicPartition
) -> tuple[int | None, str | None]:
    """Delete all records before an offset.

    Returns the start of the log on all replicas after it, or the name of the error.
    """
    admin = AdminClient(dict(config))
    (deleted,) = admin.delete_records(
        [place], operation_timeout=DELETION_TIMEOUT_S, request_timeout=QUERY_TIMEOUT_S
    ).values()
    try:
        return deleted.result().low_watermark, None
    except KafkaException as error:
        return None, error.args[0].name()


def delete_topic(config: Mapping[str, Any], topic: str) -> str | None:
    """Delete a topic; return the name of the error if it may still exist."""
    admin = AdminClient(dict(config))  # it gives up its requests when it is destroyed
    (deleted,) = admin.delete_topics(
        [topic], operation_timeout=DELETION_TIMEOUT_S, request_timeout=QUERY_TIMEOUT_S
    ).values()
    try:
        deleted.result()
    except KafkaException as error:
        name: str = error.args[0].name()
        return name
    return None


def alter_topic(config: Mapping[str, Any], topic: str, settings: Mapping[str, str]) -> str | None:
    """Change settings of a topic; return the name of the error if it may not have them."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient(dict(config))
    (altered,) = admin.incremental_alter_configs([asked], request_timeout=QUERY_TIMEOUT_S).values()
    try:
        altered.result()
    except KafkaException as error:
        name: str = error.args[0].name()
        return name
    return None
