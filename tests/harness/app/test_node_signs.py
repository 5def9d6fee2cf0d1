"""Signs of broken nodes, in excerpts of the logs of real programs."""

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.app import node_signs, run_start
from harness.app.run_start import RunStart
from model import node_sign
from model.node_sign import Kind, NodeSign

START = RunStart(datetime(2026, 11, 23, 16, 30, 0, tzinfo=UTC))
S = 1_000_000_000

OUT_OF_MEMORY = """\
[2026-11-23 16:35:29,625] INFO [Broker id=1] Add 1 partitions (state.change.logger)
[2026-11-23 16:35:30,543] ERROR Processor got uncaught exception. (kafka.network.Processor)
java.lang.OutOfMemoryError: Cannot reserve 100111 bytes of direct buffer memory
\tat java.base/java.nio.Bits.reserveMemory(Bits.java:178)
[2026-11-23 16:35:34,674] ERROR Processor got uncaught exception. (kafka.network.Processor)
java.lang.OutOfMemoryError: Cannot reserve 900199 bytes of direct buffer memory
[2026-11-23 16:35:51,874] ERROR Processor got uncaught exception. (kafka.network.Processor)
java.lang.OutOfMemoryError: Cannot reserve 900200 bytes of direct buffer memory
"""
CRASH_OUTPUT = """\
[2026-11-23 16:31:20,989] INFO Session establishment complete (org.apache.zookeeper.ClientCnxn)
#
# A fatal error has been detected by the Java Runtime Environment:
#
#  SIGSEGV (0xb) at pc=0x00007fbfb60def14 (sent by kill), pid=10476, tid=10476
#
"""
CRASH_FILE = f"""\
{CRASH_OUTPUT[CRASH_OUTPUT.index("#") :]}
---------------  S U M M A R Y ------------

Time: Mon Nov 23 16:31:31 2026 UTC elapsed time: 37.007730 seconds (0d 0h 0m 37s)
"""


def find(folder: Path, start: RunStart | None = START, **logs: str) -> list[NodeSign]:
    for node, text in logs.items():
        home = folder / "nodes" / node.replace("_", "-")
        home.mkdir(parents=True, exist_ok=True)
        (home / "log.txt").write_text(text)
    return node_signs.find(folder, start)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("# A fatal error has been detected by the Java Runtime Environment:", "jvm-crash"),
        (
            "# There is insufficient memory for the Java Runtime Environment to continue.",
            "jvm-crash",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "out-of-memory"),
        ("Caused by: java.lang.OutOfMemoryError: Metaspace", "out-of-memory"),
        (
            "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory",
            "out-of-memory",
        ),
        ("Terminating due to java.lang.OutOfMemoryError: Java heap space", "out-of-memory"),
        ("java.io.IOException: No space left on device", "disk-full"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        (
            "[2026-11-23 16:31:54,850] ERROR Shutdown broker because all log dirs in /d have failed"
            " (kafka.log.LogManager)",
            "disk-full",
        ),
        (
            "[2026-11-23 16:33:02,729] FATAL [Replica Manager on Broker 1]: Halting due to"
            " unrecoverable I/O error while handling produce request:  (kafka.server)",
            "disk-full",
        ),
        (
            "[2026-11-23 16:33:02,729] ERROR Uncaught exception in thread"
            " 'kafka-coordinator-heartbeat-thread': (o.a.k.common.utils.KafkaThread)",
            "dead-thread",
        ),
        (
            "[2026-11-23 16:33:02,729] ERROR Uncaught exception in kafka-request-handler-0:  (k)",
            "dead-thread",
        ),
        ('Exception in thread "main" java.lang.NullPointerException', "dead-thread"),
        (
            "[2026-11-23 16:33:02,729] FATAL [Kafka Server 1], Fatal error during KafkaServer"
            " startup. Prepare to shutdown (kafka.server.KafkaServer)",
            "fatal-error",
        ),
        (
            "[2026-11-23 16:33:13,393] ERROR Exiting Kafka due to fatal exception during startup.",
            "fatal-error",
        ),
        (
            "[2026-11-23 16:33:13,393] ERROR Encountered fatal fault: Error applying record (o.a)",
            "fatal-error",
        ),
        (
            "[2026-11-23 16:33:13,393] ERROR Encountered metadata loading fault: no topic (o.a)",
            "fatal-error",
        ),
        ("[2026-11-23 16:33:13,393] FATAL anything else", "fatal-error"),
        (
            "2026-11-23 16:33:02,729 CRITICAL broker_impl: the broker stops because of an"
            " unexpected error: 'x'",
            "unexpected-error",
        ),
        (
            "2026-11-23 16:33:02,729 ERROR broker_impl.server.connection: connection 3: a request"
            " failed with an unexpected error",
            "unexpected-error",
        ),
        ("2026-11-23 16:33:02,729 ERROR asyncio: Task exception was never retrieved",
         "unexpected-error"),
        # What healthy nodes log, and what other faults cause:
        (
            "[2026-11-23 16:33:02,729] ERROR Uncaught exception in scheduled task 'flush' (k)",
            None,
        ),
        (
            "[2026-11-23 16:33:02,729] FATAL [Kafka Server 1], Fatal error during KafkaServer"
            " shutdown. (kafka.server.KafkaServer)",
            None,
        ),
        ("[2026-11-23 16:33:02,729] ERROR Encountered nonfatal controller fault: x (o.a)", None),
        ("[2026-11-23 16:33:02,729] INFO args: -XX:+ExitOnOutOfMemoryError", None),
        ("[2026-11-23 16:33:02,729] WARN Session 0x1 for server 127.0.0.1: fatal (o.a)", None),
        ("[2026-11-23 16:33:02,729] INFO [Broker id=1] a FATAL word", None),
        ("", None),
    ],
)  # fmt: skip
def test_kind_of(line: str, kind: Kind | None) -> None:
    """Each program's way to report that it is broken is recognized; a near miss is not."""
    assert node_signs.kind_of(line.encode()) == kind


def test_a_line_of_a_stack_trace_has_the_time_of_the_line_before(tmp_path: Path) -> None:
    """Lines of one kind are one sign if they are close in time; a later one is another sign."""
    first, second = find(tmp_path, broker_1=OUT_OF_MEMORY)
    assert (first.kind, first.count) == ("out-of-memory", 2)
    assert (first.time_ns, first.last_ns) == (330_543_000_000, 334_674_000_000)
    assert first.line.startswith("java.lang.OutOfMemoryError: Cannot reserve 100111 bytes")
    assert (second.time_ns, second.count) == (351_874_000_000, 1)


def test_the_file_of_a_crash_stands_for_the_output_about_it(tmp_path: Path) -> None:
    """The JVM's own file has the time and the cause of the crash, and is one sign."""
    (bare,) = find(tmp_path, broker_1=CRASH_OUTPUT)
    assert bare.time_ns == 80_989_000_000
    (tmp_path / "nodes" / "broker-1" / "hs_err_pid10476.log").write_text(CRASH_FILE)
    (sign,) = node_signs.find(tmp_path, START)
    assert (sign.node, sign.kind, sign.time_ns) == ("broker-1", "jvm-crash", 91 * S)
    assert sign.line.startswith("hs_err_pid10476.log: SIGSEGV (0xb) at pc=0x00007fbfb60def14")


def test_a_crash_without_a_file_is_not_hidden_by_another_one(tmp_path: Path) -> None:
    """If the output shows more crashes than there are files, all of it counts."""
    find(tmp_path, broker_1=CRASH_OUTPUT + CRASH_OUTPUT.replace("16:31:20", "16:39:20"))
    (tmp_path / "nodes" / "broker-1" / "hs_err_pid10476.log").write_text("torn")
    times = [sign.time_ns for sign in node_signs.find(tmp_path, START)]
    assert times == [None, 80_989_000_000, 560_989_000_000]


def test_without_the_start_of_the_run_signs_have_no_times(tmp_path: Path) -> None:
    """A sign is recorded even if its time in the run is unknown."""
    (sign,) = find(tmp_path, None, broker_1=OUT_OF_MEMORY)
    assert (sign.time_ns, sign.last_ns, sign.count) == (None, None, 3)


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A log, a file or a folder that is a link is not read."""
    find(tmp_path, broker_1=OUT_OF_MEMORY)
    nodes = tmp_path / "nodes"
    (nodes / "broker-2").symlink_to(nodes / "broker-1")
    (nodes / "broker-3").mkdir()
    (nodes / "broker-3" / "log.txt").symlink_to(nodes / "broker-1" / "log.txt")
    (nodes / "broker-3" / "hs_err_pid1.log").symlink_to(nodes / "broker-1" / "log.txt")
    (nodes / "pids.json").write_text("java.lang.OutOfMemoryError")
    assert {sign.node for sign in node_signs.find(tmp_path, START)} == {"broker-1"}
    assert node_signs.find(tmp_path / "absent", START) == []


def test_a_run_gets_a_file_with_the_signs(tmp_path: Path) -> None:
    """The signs of all nodes are in one file; a run without signs has an empty one."""
    node_signs.record(tmp_path)
    assert node_sign.read(tmp_path / node_sign.FILE) == ()
    assert (tmp_path / node_sign.FILE).read_bytes() == b""
    run_start.write(tmp_path, int(START.started.timestamp()) * S, simulated=False)
    found = find(tmp_path, broker_1=OUT_OF_MEMORY, zookeeper="2026-11-23 16:35:30,543 INFO up\n")
    node_signs.record(tmp_path)
    assert node_sign.read(tmp_path / node_sign.FILE) == tuple(found)
    assert len(found) == 2


_SIGNS = st.builds(
    lambda kind, at_s: NodeSign(node="a", kind=kind, time_ns=at_s, last_ns=at_s, line=""),
    st.sampled_from(["disk-full", "fatal-error"]),
    st.none() | st.integers(0, 40).map(lambda at_s: at_s * S),
)


@given(st.lists(_SIGNS, max_size=20))
def test_merging_loses_no_line(signs: list[NodeSign]) -> None:
    """All lines are counted, and two signs of a kind are further apart than merged ones."""
    merged = node_signs.merged(signs)
    assert sum(sign.count for sign in merged) == len(signs)
    for kind in ("disk-full", "fatal-error"):
        of_kind = [sign for sign in merged if sign.kind == kind and sign.time_ns is not None]
        for before, after in itertools.pairwise(of_kind):
            assert (after.time_ns or 0) - (before.last_ns or 0) > node_signs.SAME_NS


@given(st.binary(max_size=60))
def test_any_line_can_be_examined(line: bytes) -> None:
    """A line of arbitrary bytes is a sign only if it is one at a stated level."""
    assert node_signs.kind_of(b"2026-11-23 16:33:02,729 FATAL " + line) is not None
