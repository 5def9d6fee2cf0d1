"""kafka-topics, kafka-configs and the other tools about topics and brokers."""

import re
from typing import Any

import pytest

pytestmark = [pytest.mark.prove, pytest.mark.real_kafka, pytest.mark.slow]


def test_topics(cluster: Any) -> None:
    """Topics are created, listed, described, extended and deleted."""
    ask = cluster.ask
    create = ("kafka-topics", "--create", "--topic")
    spread = ("--partitions", "2", "--replication-factor", "3")
    assert ask(*create, "t", *spread, "--config", "retention.ms=3600000").output == (
        "Created topic t.\n"
    )
    assert ask(*create, "t", "--if-not-exists", *spread).output == ""
    again = cluster.tools.run(*create, "t", "--bootstrap-server", cluster.bootstrap, *spread)
    assert again.status == 1
    assert "TopicExistsException" in again.output + again.errors
    ask(*create, "placed", "--replica-assignment", "1:2,2:3")
    assert {"t", "placed"} <= set(ask("kafka-topics", "--list").output.split())
    described = ask("kafka-topics", "--describe", "--topic", "t").output
    assert re.match(
        r"Topic: t\tTopicId: \S{22}\tPartitionCount: 2\tReplicationFactor: 3\t"
        r"Configs: retention.ms=3600000\n",
        described,
    )
    assert cluster.partition("placed", 1) == {
        "Topic": "placed", "Partition": "1", "Leader": "2", "Replicas": "2,3", "Isr": "2,3",
    }  # fmt: skip
    for choice in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert "t\t" not in ask("kafka-topics", "--describe", "--topic", "t", choice).output
    overridden = ask("kafka-topics", "--describe", "--topics-with-overrides").output
    assert ("Topic: t\t" in overridden, "Topic: placed\t" in overridden) == (True, False)
    ask("kafka-topics", "--alter", "--topic", "t", "--partitions", "3")
    assert cluster.partition("t", 2)["Partition"] == "2"
    fewer = ("--alter", "--topic", "t", "--partitions", "2")
    refused = cluster.tools.run("kafka-topics", "--bootstrap-server", cluster.bootstrap, *fewer)
    assert "InvalidPartitionsException" in refused.output + refused.errors
    ask("kafka-topics", "--delete", "--topic", "placed")
    assert "placed" not in ask("kafka-topics", "--list").output.split()


def test_topics_through_zookeeper(cluster: Any) -> None:
    """Older notes use ``--zookeeper HOST:PORT/kafka``: the controller obeys what it writes."""
    ask = cluster.ask_zookeeper
    ask("kafka-topics", "--create", "--topic", "z", "--partitions", "2", "--replication-factor",
        "2", "--config", "flush.messages=7")  # fmt: skip
    assert "z" in ask("kafka-topics", "--list").output.split()
    ask("kafka-topics", "--alter", "--topic", "z", "--partitions", "3")
    described = ask("kafka-topics", "--describe", "--topic", "z").output
    assert "PartitionCount: 3\tReplicationFactor: 2\tConfigs: flush.messages=7" in described
    assert cluster.partition("z", 2)["Leader"] != "none"
    ask("kafka-configs", "--entity-type", "topics", "--entity-name", "z", "--alter",
        "--add-config", "retention.ms=9999")  # fmt: skip
    shown = ask("kafka-configs", "--entity-type", "topics", "--entity-name", "z", "--describe")
    assert "retention.ms=9999" in shown.output
    ask("kafka-topics", "--delete", "--topic", "z")


def of(kind: str, name: str | None) -> tuple[str, ...]:
    """The arguments that name an entity of kafka-configs; None is the default entity."""
    return "--entity-type", kind, *(("--entity-name", name) if name else ("--entity-default",))


@pytest.mark.parametrize(
    ("kind", "name", "setting", "shown"),
    [
        ("topics", "configured", "cleanup.policy=[compact,delete]",
         "cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"),
        ("brokers", "1", "log.cleaner.threads=2",
         "log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:"),
        ("brokers", None, "num.io.threads=4",
         "num.io.threads=4 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:"),
        ("broker-loggers", "1", "broker_impl.node.controller.term=DEBUG",
         "broker_impl.node.controller.term=DEBUG sensitive=false"),
        ("users", "alice", "producer_byte_rate=1024",
         "Quota configs for user-principal 'alice' are producer_byte_rate=1024.0"),
        ("clients", None, "consumer_byte_rate=1048576",
         "Quota configs for the default client-id are consumer_byte_rate=1048576.0"),
        ("users", "bob", "SCRAM-SHA-256=[iterations=8192,password=bob-secret]",
         "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-256=iterations=8192"),
    ],
)  # fmt: skip
def test_configs(cluster: Any, kind: str, name: str | None, setting: str, shown: str) -> None:
    """Settings of each kind of entity are set, described and deleted."""
    if kind == "topics":
        cluster.create("configured")
    entity = of(kind, name)
    cluster.ask("kafka-configs", *entity, "--alter", "--add-config", setting)
    assert shown in cluster.ask("kafka-configs", *entity, "--describe").output
    if kind == "broker-loggers":
        return  # a level that was deleted is shown as that of the logger above
    key = setting.partition("=")[0]
    cluster.ask("kafka-configs", *entity, "--alter", "--delete-config", key)
    assert shown not in cluster.ask("kafka-configs", *entity, "--describe").output


def test_api_versions_and_features(cluster: Any) -> None:
    """The tools read what each broker serves; no feature is versioned, as in Kafka 2.8."""
    output = cluster.ask("kafka-broker-api-versions").output
    assert output.count("Produce(0): 0 to 9 [usable: 9]") == 3
    assert cluster.ask("kafka-features", "--describe").output == ""


def test_log_dirs_and_deleted_records(cluster: Any) -> None:
    """kafka-log-dirs shows sizes of logs, and kafka-delete-records moves their start."""
    cluster.create("sized")
    cluster.produce("sized", *"abcde")
    described = cluster.ask("kafka-log-dirs", "--describe", "--topic-list", "sized").output
    assert '"broker":3' in described
    assert f'"logDir":"{cluster.data(2)}","error":null' in described
    assert len(re.findall(r'"partition":"sized-0","size":[1-9]\d*,"offsetLag":0', described)) == 3
    cluster.tools.write(
        "delete.json",
        '{"version":1,"partitions":[{"topic":"sized","partition":0,"offset":3}]}',
    )
    deleted = cluster.ask("kafka-delete-records", "--offset-json-file", "delete.json").output
    assert "partition: sized-0\tlow_watermark: 3" in deleted
    asked = ("--broker-list", cluster.bootstrap, "--topic", "sized", "--time")
    for time, shown in (("-2", "sized:0:3\n"), ("-1", "sized:0:5\n")):
        assert cluster.tools.run("kafka-get-offsets", *asked, time).output == shown
