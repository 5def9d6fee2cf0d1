"""Times and levels at the beginning of log lines."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.app import log_lines
from harness.app.log_lines import Level

START_NS = log_lines.epoch_ns(datetime(2026, 11, 20, 16, 0, 0, tzinfo=UTC))
S = 1_000_000_000


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (b"2026-11-20 16:00:01,250 INFO broker: up", 1.25),
        (b"[2026-11-20 16:00:01,250] INFO [Broker id=1] up (kafka.server)", 1.25),
        (b"2026-11-20T16:00:01.250Z up", 1.25),
        (b'{"level":"info","time":"2026-11-20T16:00:02Z","message":"up"}', 2.0),
        (b"2026-13-40 16:00:01,250 no date", None),
        (b"Traceback (most recent call last):", None),
        (b"", None),
        (b"\xff\xfe2026-11-20 16:00:01,250", None),
    ],
)
def test_stamp(line: bytes, seconds: float | None) -> None:
    """Times are parsed in the formats of Python, Kafka and Toxiproxy; other lines have none."""

    found = log_lines.stamp(line)
    assert found == (None if seconds is None else START_NS + int(seconds * S))


@given(st.binary(max_size=80))
def test_any_line_can_be_looked_at(line: bytes) -> None:
    """A line of arbitrary bytes raises no error."""
    assert log_lines.stamp(line) is None or log_lines.stamp(line) is not None


ZOOKEEPER = b"2026-11-23 16:30:49,883 [myid:] - WARN  [main:QuorumPeerMain@139] - standalone mode"


@pytest.mark.parametrize(
    ("line", "level"),
    [
        (b"[2026-11-23 16:31:09,496] WARN Session 0x1 for server (o.a.z.ClientCnxn)", Level.WARN),
        (b"[2026-11-23 16:31:54,850] ERROR Shutdown broker (kafka.log.LogManager)", Level.ERROR),
        (b"[2026-11-23 16:33:02,729] FATAL [Replica Manager on Broker 1]: Halting", Level.FATAL),
        (b"[2026-11-23 16:33:02,729] INFO the last ERROR was WARN", None),
        (ZOOKEEPER, Level.WARN),
        (ZOOKEEPER.replace(b"[myid:]", b"[myid:1]").replace(b"WARN ", b"ERROR"), Level.ERROR),
        (ZOOKEEPER.replace(b"WARN ", b"INFO "), None),
        (b"2026-11-20 16:00:01,250 WARNING broker_impl.node: late", Level.WARN),
        (b"2026-11-20 16:00:01,250 CRITICAL broker_impl: the broker stops", Level.FATAL),
        (b"2026-11-20T16:00:01.250Z ERROR up", Level.ERROR),
        (b'{"level":"error","name":"a","time":"2026-11-20T16:00:02Z"}', Level.ERROR),
        (b'{"time":"2026-11-20T16:00:02Z","level":"warning","message":"a"}', Level.WARN),
        (b'{"level":"info","message":"\\"level\\":\\"error\\""}', None),
        (b"ERROR StatusLogger no configuration", None),
        (b"java.io.IOException: an ERROR", None),
        (b"", None),
    ],
)
def test_level(line: bytes, level: Level | None) -> None:
    """Levels are parsed in the formats of Kafka, ZooKeeper, Python and Toxiproxy.

    A level's name inside the text, or in a line without a time, does not count.
    """
    assert log_lines.level(line) is level


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[2026-11-23 16:31:09,496] WARN late (kafka.A)", "WARN late (kafka.A)"),
        (ZOOKEEPER.decode(), "[myid:] - WARN  [main:QuorumPeerMain@139] - standalone mode"),
        ('{"level":"error","name":"a","error":"refused"}', "error: a: refused"),
        ("{no JSON", "{no JSON"),
        ("\tat kafka.Kafka.main(Kafka.scala:112)", "\tat kafka.Kafka.main(Kafka.scala:112)"),
    ],
)
def test_plain(line: str, text: str) -> None:
    """The text of a line has no time, which the page shows in a column of its own."""
    assert log_lines.plain(line) == text


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" ")), max_size=8))
def test_lines_begin_at_their_offsets(
    tmp_path_factory: pytest.TempPathFactory, of: list[bytes]
) -> None:
    """Each line is found at its offset, whatever bytes the log has."""
    content = b"\n".join(of)
    path = tmp_path_factory.mktemp("log") / "log.txt"
    path.write_bytes(content)
    found = list(log_lines.lines(path))
    assert [content[at : at + len(line)] for at, line in found] == [line for _, line in found]
    assert b"".join(line for _, line in found) == content


def test_an_overlong_line_is_one_line(tmp_path: Path) -> None:
    """Of an overlong line only the beginning is returned, and the next line has its own offset."""
    path = tmp_path / "log.txt"
    path.write_bytes(b"a" * 200_000 + b"\nb\n")
    assert list(log_lines.lines(path)) == [(0, b"a" * log_lines.LINE_BYTES), (200_001, b"b\n")]


def test_reading_is_bounded(tmp_path: Path) -> None:
    """Reading stops after the given number of bytes, at the end of a line."""
    path = tmp_path / "log.txt"
    path.write_bytes(b"0123456789\n" * 10)
    assert len(list(log_lines.lines(path, bytes_max=20))) == 2
    assert len(list(log_lines.lines(path, bytes_max=None))) == 10
