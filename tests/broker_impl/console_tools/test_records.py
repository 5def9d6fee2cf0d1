"""The tools that write and read records, measure, and show the files of a log."""

import json
import re
import subprocess
from typing import Any

import pytest

from tests.broker_impl.test_process import wait_for

pytestmark = [pytest.mark.prove, pytest.mark.real_kafka, pytest.mark.slow]

KEYED = ("--property", "parse.key=true", "--property", "key.separator=:")
TO_THE_END = ("--from-beginning", "--timeout-ms", "5000")


def test_console_producer_and_consumer(cluster: Any) -> None:
    """Records of each codec arrive with their keys and offsets; a group reads on where it was."""
    cluster.create("lines")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        cluster.ask("kafka-console-producer", "--topic", "lines", "--request-required-acks", "all",
                    "--compression-codec", codec, *KEYED, given=f"k:{codec}\n")  # fmt: skip
    read = cluster.ask("kafka-console-consumer", "--topic", "lines", *TO_THE_END, "--property",
                       "print.key=true", "--property", "print.offset=true", "--group", "readers",
                       "--max-messages", "3")  # fmt: skip
    assert read.lines == [["Offset:0", "k", "none"], ["Offset:1", "k", "gzip"],
                          ["Offset:2", "k", "snappy"]]  # fmt: skip
    rest = ("--group", "readers", "--max-messages", "2", "--timeout-ms", "20000")
    assert cluster.ask("kafka-console-consumer", "--topic", "lines", *rest).output == "lz4\nzstd\n"
    from_two = ("--partition", "0", "--offset", "2", "--max-messages", "1")
    committed = ("--isolation-level", "read_committed", *from_two)
    assert cluster.ask("kafka-console-consumer", "--topic", "lines", *committed).output == (
        "snappy\n"
    )
    commits = cluster.ask("kafka-console-consumer", "--topic", "__consumer_offsets", *TO_THE_END,
                          "--formatter",
                          "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
                          ).output  # fmt: skip
    assert "[readers,lines,0]::OffsetAndMetadata(offset=3, " in commits
    assert "[readers,lines,0]::OffsetAndMetadata(offset=5, leaderEpoch=Optional[0]" in commits


def test_performance_tests(cluster: Any) -> None:
    """The performance tests write, read and time as many records as they are asked to."""
    cluster.create("fast")
    tools, bootstrap = cluster.tools, cluster.bootstrap
    written = tools.run(
        *("kafka-producer-perf-test", "--topic", "fast", "--num-records", "2000"),
        *("--record-size", "100", "--throughput", "-1", "--print-metrics"),
        *("--producer-props", f"bootstrap.servers={bootstrap}", "acks=all"),
    )
    assert written.output.startswith("2000 records sent, ")
    read = cluster.ask("kafka-consumer-perf-test", "--topic", "fast", "--messages", "2000")
    columns = read.output.splitlines()[-1].split(", ")
    assert columns[4] == "2000"
    timed = tools.run("kafka-e2e-latency", bootstrap, "fast", "20", "all", "100")
    assert "Avg latency: " in timed.output
    verified = cluster.ask("kafka-verifiable-producer", "--topic", "fast", "--max-messages", "3")
    last = json.loads(verified.output.splitlines()[-1])
    assert (last["sent"], last["acked"]) == (3, 3)
    consumed = cluster.ask("kafka-verifiable-consumer", "--topic", "fast", "--group-id",
                           "verified", "--max-messages", "10").output  # fmt: skip
    assert '"name":"offsets_committed","offsets":[{"topic":"fast","partition":0,"offset":10}]' in (
        consumed
    )


def test_replicas_are_verified(cluster: Any) -> None:
    """kafka-replica-verification reads each replica, and finds no difference."""
    cluster.create("equal")
    cluster.produce("equal", *"abc")
    command = cluster.tools.command(
        *("kafka-replica-verification", "--broker-list", cluster.bootstrap),
        *("--topic-white-list", "equal", "--report-interval-ms", "500"),
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = [next(process.stdout) for _ in range(3)]
        finally:
            process.kill()
    assert "max lag is 0 for partition equal-0 at offset 3 among 1 partitions" in found[-1]


def test_dump_log(cluster: Any) -> None:
    """kafka-dump-log reads the segments, indexes and snapshots of this project's brokers."""
    cluster.create("dumped")
    cluster.ask("kafka-console-producer", "--topic", "dumped", "--sync", *KEYED, given="k:first\n")
    for _ in range(2):
        cluster.tools.run(
            *("kafka-producer-perf-test", "--topic", "dumped", "--num-records", "400"),
            *("--record-size", "100", "--throughput", "-1", "--producer-props"),
            *(f"bootstrap.servers={cluster.bootstrap}", "batch.size=1000"),
            *("enable.idempotence=true", "acks=all"),
        )
    folder = cluster.data(1) / "dumped-0"
    segment = folder / f"{0:020}.log"
    wait_for(lambda: segment.stat().st_size == (cluster.data(2) / segment.relative_to(
        cluster.data(1))).stat().st_size)  # fmt: skip

    def dump(*arguments: str) -> str:
        done = cluster.tools.run("kafka-dump-log", *arguments)
        assert (done.status, done.errors) == (0, "")
        return str(done.output)

    shown = dump("--files", str(segment), "--print-data-log")
    assert "baseOffset: 0 lastOffset: 0 count: 1" in shown
    assert re.search(r"offset: 0 isValid: true .* key: k payload: first\n", shown)
    assert "isvalid: false" not in shown
    assert re.search(r"lastOffset: 800 .* magic: 2 compresscodec: NONE", shown)
    cluster.restart(1)  # which writes the index entries in memory, and a snapshot of the producers
    indexes = ",".join(str(segment.with_suffix(suffix)) for suffix in (".index", ".timeindex"))
    shown = dump("--files", indexes, "--verify-index-only", "--index-sanity-check")
    assert shown.count("passed sanity check.") == 2
    shown = dump("--files", indexes)
    assert re.search(r"offset: \d+ position: \d+\n", shown)
    assert re.search(r"timestamp: \d{13} offset: \d+\n", shown)
    assert "Found timestamp mismatch" not in shown
    [snapshot] = folder.glob("*.snapshot")
    shown = dump("--files", str(snapshot))
    assert len(set(re.findall(r"producerId: \d+", shown))) == 2
    assert "coordinatorEpoch: -1" in shown
    cluster.ask("kafka-consumer-groups", "--group", "dumping", "--topic", "dumped",
                "--reset-offsets", "--to-earliest", "--execute")  # fmt: skip
    logs = [*cluster.data(1).glob(f"__consumer_offsets-*/{0:020}.log")]
    wait_for(lambda: "key: offset_commit::group=dumping,partition=dumped-0" in dump(
        "--files", ",".join(str(path) for path in logs if path.stat().st_size),
        "--offsets-decoder"), 60)  # fmt: skip
