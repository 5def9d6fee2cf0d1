"""Settings of topics: how they are created, and what their partitions accept."""

from dataclasses import dataclass

from broker_impl.config.setting import INT64_MAX, key
from broker_impl.kafka_settings import Kind


@dataclass(frozen=True, kw_only=True)
class TopicSettings:
    """Settings of the creation of topics, and of what producers may append."""

    num_partitions: int = key(
        "num.partitions", 1, "Number of partitions of a created topic.", low=1
    )
    default_replication_factor: int = key(
        "default.replication.factor", 1, "Replication factor of a created topic.", low=1
    )
    auto_create_topics_enable: bool = key(
        "auto.create.topics.enable", True, "A metadata request for an unknown topic creates it."
    )
    delete_topic_enable: bool = key("delete.topic.enable", True, "Whether topics can be deleted.")
    min_insync_replicas: int = key(
        "min.insync.replicas",
        1,
        "Number of in-sync replicas that acks=all requires.",
        low=1,
        topic="min.insync.replicas",
    )
    unclean_leader_election_enable: bool = key(
        "unclean.leader.election.enable",
        False,
        "A replica outside of the ISR may become the leader, which loses records.",
        topic="unclean.leader.election.enable",
    )
    message_max_bytes: int = key(
        "message.max.bytes", 1_048_588, "Maximum size of a batch.", low=0, topic="max.message.bytes"
    )
    compression_type: str = key(
        "compression.type",
        "producer",
        "The codec with which batches are stored; `producer`: as producers compressed them.",
        one_of=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        topic="compression.type",
    )
    log_message_format_version: str = key(
        "log.message.format.version",
        "2.8-IV1",
        "A version of Kafka from 0.11.0 on, all of which store batches in the same format.",
        pattern=r"(0\.11\.0|1\.[01]|2\.[0-8])(\.[0-9]+)*(-IV[0-9])?",
        form="a version of Kafka from 0.11.0 to 2.8, which store batches in format 2",
        topic="message.format.version",
    )
    log_message_downconversion_enable: bool = key(
        "log.message.downconversion.enable",
        True,
        "Whether batches are converted for old consumers. This broker serves none that need it.",
        topic="message.downconversion.enable",
    )
    log_message_timestamp_type: str = key(
        "log.message.timestamp.type",
        "CreateTime",
        "Whether a record's time is when it was created or appended.",
        one_of=("CreateTime", "LogAppendTime"),
        topic="message.timestamp.type",
    )
    log_message_timestamp_difference_max_ms: int = key(
        "log.message.timestamp.difference.max.ms",
        INT64_MAX,
        "Maximum difference between a record's timestamp and the broker's clock.",
        low=0,
        topic="message.timestamp.difference.max.ms",
        kind=Kind.LONG,
    )
