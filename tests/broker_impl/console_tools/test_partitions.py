"""kafka-reassign-partitions, kafka-leader-election and their predecessor."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.broker_impl.console_tools.programs import Tools
from tests.broker_impl.test_process import Site, wait_for

pytestmark = [pytest.mark.prove, pytest.mark.real_kafka, pytest.mark.slow]

REASSIGN = "kafka-reassign-partitions"


def place(cluster: Any, topic: str, *partitions: str) -> None:
    """Create a topic whose partitions have these replicas."""
    placed = ",".join(partitions)
    cluster.ask("kafka-topics", "--create", "--topic", topic, "--replica-assignment", placed)


def plan(cluster: Any, name: str, topic: str, *replicas: list[int]) -> tuple[str, str]:
    """Write a plan that gives each partition these replicas; return the tool's argument."""
    rows = [
        {"topic": topic, "partition": number, "replicas": wanted}
        for number, wanted in enumerate(replicas)
    ]
    cluster.tools.write(name, json.dumps({"version": 1, "partitions": rows}))
    return "--reassignment-json-file", name


def test_partitions_are_reassigned(cluster: Any) -> None:
    """A generated plan is executed with a throttle, verified, and its throttle is removed."""
    place(cluster, "moved", "1:2", "2:1")
    cluster.produce("moved", *"abcd")
    cluster.tools.write("topics.json", '{"topics":[{"topic":"moved"}],"version":1}')
    generated = cluster.ask(REASSIGN, "--topics-to-move-json-file", "topics.json",
                            "--broker-list", "2,3", "--generate").output  # fmt: skip
    current, proposed = [line for line in generated.splitlines() if line.startswith("{")]
    before = [row["replicas"] for row in json.loads(current)["partitions"]]
    assert before == [[1, 2], [2, 1]]
    assert {2, 3} == {n for row in json.loads(proposed)["partitions"] for n in row["replicas"]}
    cluster.tools.write("moved.json", proposed)
    file = ("--reassignment-json-file", "moved.json")
    started = cluster.ask(REASSIGN, *file, "--execute", "--throttle", "1000000").output
    assert "The inter-broker throttle limit was set to 1000000 B/s" in started
    wait_for(lambda: "is complete" in (
        cluster.ask(REASSIGN, *file, "--verify", "--preserve-throttles").output), 60)  # fmt: skip
    broker = ("--entity-type", "brokers", "--entity-name", "3", "--describe")
    throttle = "leader.replication.throttled.rate=1000000"
    assert throttle in cluster.ask("kafka-configs", *broker).output
    assert "throttled.replicas" in cluster.ask("kafka-topics", "--describe", "--topic",
                                               "moved").output  # fmt: skip
    verified = cluster.ask(REASSIGN, *file, "--verify").output
    assert "Clearing broker-level throttles on brokers 1,2,3" in verified
    assert "Clearing topic-level throttles on topic moved" in verified
    assert throttle not in cluster.ask("kafka-configs", *broker).output
    assert "throttled.replicas" not in cluster.ask("kafka-topics", "--describe", "--topic",
                                                   "moved").output  # fmt: skip
    assert "No partition reassignments found." in cluster.ask(REASSIGN, "--list").output
    assert "None of the specified partition reassignments are active." in cluster.ask(
        REASSIGN, *file, "--cancel").output  # fmt: skip


def test_partitions_are_reassigned_through_zookeeper(cluster: Any) -> None:
    """``--zookeeper`` writes the plan to a znode, from which ``--verify`` sees the progress."""
    place(cluster, "by-znode", "1:2")
    file = plan(cluster, "by-znode.json", "by-znode", [3, 1])
    started = cluster.ask_zookeeper(REASSIGN, *file, "--execute", "--throttle", "5000000").output
    assert "Successfully started partition reassignment for by-znode-0" in started
    wait_for(lambda: "by-znode-0 is complete" in (
        cluster.ask_zookeeper(REASSIGN, *file, "--verify").output), 60)  # fmt: skip
    assert cluster.partition("by-znode")["Replicas"] == "3,1"
    again = plan(cluster, "again.json", "by-znode", [1, 2, 3])
    cluster.ask_zookeeper(REASSIGN, *again, "--execute")
    wait_for(lambda: set(cluster.partition("by-znode")["Isr"].split(",")) == {"1", "2", "3"}, 60)


@pytest.mark.parametrize("tool", ["kafka-leader-election", "kafka-preferred-replica-election"])
def test_the_preferred_replica_leads_again(cluster: Any, tool: str) -> None:
    """After a restart the first replica leads again; the older tool writes a znode."""
    topic = f"led-by-{tool}"
    place(cluster, topic, "2:3")
    cluster.restart(2)
    wait_for(lambda: set(cluster.partition(topic)["Isr"].split(",")) == {"2", "3"}, 60)
    assert cluster.partition(topic)["Leader"] == "3"
    if tool == "kafka-leader-election":
        wanted = ("--topic", topic, "--partition", "0")
        elected = cluster.ask(tool, "--election-type", "preferred", *wanted).output
        assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in (
            elected
        )
        assert "Valid replica already elected" in cluster.ask(
            tool, "--election-type", "unclean", *wanted).output  # fmt: skip
    else:
        cluster.ask_zookeeper(tool)
    wait_for(lambda: cluster.partition(topic)["Leader"] == "2", 30)


def test_a_replica_moves_to_another_log_directory(tools: Tools, tmp_path: Path) -> None:
    """A plan names a log directory (KIP-113); its records are read after the move."""
    site = Site(tmp_path)
    folders = [str(tmp_path / name) for name in "ab"]
    try:
        site.broker(log_dirs=",".join(folders), offsets_topic_num_partitions="1",
                    offsets_topic_replication_factor="1")  # fmt: skip
        at = site.address()

        def ask(name: str, *arguments: str, given: str = "") -> str:
            done = tools.run(name, "--bootstrap-server", at, *arguments, given=given)
            assert done.status == 0, done.output + done.errors
            return done.output

        def holds(folder: str) -> bool:
            shown = ask("kafka-log-dirs", "--describe").splitlines()[-1]
            [row] = [each for each in json.loads(shown)["brokers"][0]["logDirs"]
                     if each["logDir"] == folder]  # fmt: skip
            return any(each["partition"] == "placed-0" for each in row["partitions"])

        ask("kafka-topics", "--create", "--topic", "placed", "--partitions", "1",
            "--replication-factor", "1")  # fmt: skip
        ask("kafka-console-producer", "--topic", "placed", "--sync", given="x\ny\nz\n")
        here, there = folders if holds(folders[0]) else reversed(folders)
        rows = [{"topic": "placed", "partition": 0, "replicas": [1], "log_dirs": [there]}]
        tools.write("placed.json", json.dumps({"version": 1, "partitions": rows}))
        file = ("--reassignment-json-file", "placed.json")
        ask(REASSIGN, *file, "--execute", "--replica-alter-log-dirs-throttle", "1000000")
        wait_for(lambda: "completed successfully" in ask(REASSIGN, *file, "--verify"), 60)
        assert (holds(here), holds(there)) == (False, True)
        assert (Path(there) / "placed-0").is_dir()
        assert not (Path(here) / "placed-0").exists()
        read = ask("kafka-console-consumer", "--topic", "placed", "--from-beginning",
                   "--max-messages", "3")  # fmt: skip
        assert read.split() == ["x", "y", "z"]
    finally:
        site.close()
