"""Warnings and errors of the nodes, as marks and as kinds."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.app.log_lines import Level
from harness.app.report import node_logs, node_warnings
from harness.app.report.node_warnings import NodeWarnings
from harness.app.run_start import RunStart

START = RunStart(datetime(2026, 11, 23, 16, 30, 0, tzinfo=UTC))
S = 1_000_000_000
RECONNECT = "Session 0x100000ea7dd0000 for server /127.0.0.1:42099, Closing socket connection."


def kafka(at_s: float, level: str, text: str) -> str:
    moment = START.started + timedelta(seconds=at_s)
    return f"[{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}] {level} {text}\n"


def of(
    folder: Path, start: RunStart | None = START, end_s: float = 20.0, **texts: str
) -> list[NodeWarnings]:
    for node, text in texts.items():
        path = folder / "nodes" / node.replace("_", "-") / "log.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return node_warnings.of(node_logs.find(folder), start, round(end_s * S))


def test_lines_of_a_kind_are_counted_together(tmp_path: Path) -> None:
    """Lines that differ only in numbers and ids are one kind; serious kinds come first."""
    text = "".join(kafka(at, "WARN", RECONNECT.replace("42099", f"{at}")) for at in (1, 2, 9))
    text += kafka(3, "INFO", "an ERROR") + kafka(4, "ERROR", "broken\n\tat a.B(B.java:4)")
    text += kafka(5, "FATAL", "Halting")
    (node,) = of(tmp_path, broker_1=text, broker_2=kafka(1, "INFO", "up"))
    assert (node.node, node.link, node.total) == ("broker-1", "nodes/broker-1/log.txt", 5)
    fatal, error, warn = node.kinds
    assert (fatal.level, fatal.number) == (Level.FATAL, 7)
    assert (error.level, error.sample) == (Level.ERROR, "ERROR broken")
    assert (warn.level, warn.count) == (Level.WARN, 3)
    assert (warn.first_ns, warn.last_ns) == (1 * S, 9 * S)
    assert warn.sample == f"WARN {RECONNECT.replace('42099', '1')}"
    assert [(mark.level, mark.seconds) for mark in node.marks] == [
        *((Level.WARN, at) for at in (1.0, 2.0, 9.0)), (Level.ERROR, 4.0), (Level.FATAL, 5.0)
    ]  # fmt: skip


def test_a_flood_of_warnings_stays_small(tmp_path: Path) -> None:
    """The number of marks and kinds is bounded; every line is counted once in each."""
    flood = "".join(
        kafka(20 * n / 9000, ("WARN", "ERROR", "FATAL")[n % 3], f"of {chr(97 + n % 20)} {n}")
        for n in range(9000)
    )
    (node,) = of(tmp_path, broker_1=flood)
    assert node_warnings.MARKS // 4 < len(node.marks) <= node_warnings.MARKS
    assert sum(mark.count for mark in node.marks) == node.total == 9000
    assert len(node.kinds) == node_warnings.KINDS
    assert node.kinds_left == 60 - node_warnings.KINDS
    assert sum(kind.count for kind in node.kinds) + node.lines_left == 9000


def test_kinds_that_are_too_many_share_a_row(tmp_path: Path) -> None:
    """A log in which every line differs needs no more memory than the limit of kinds."""
    count = node_warnings.KINDS_COUNTED + 300
    letters = str.maketrans("0123456789", "abcdefghij")
    text = "".join(kafka(1, "WARN", f"{n}".translate(letters)) for n in range(count))
    (node,) = of(tmp_path, broker_1=text)
    assert (node.kinds[0].sample, node.kinds[0].count) == (node_warnings.OTHER, 300)
    assert node.kinds_left + len(node.kinds) == node_warnings.KINDS_COUNTED + 1


def test_lines_from_before_the_run_are_not_on_its_time_axis(tmp_path: Path) -> None:
    """Lines from before second 0 and after the end have no mark, but are counted."""
    text = "".join(kafka(at, "WARN", "late") for at in (-3, 0, 20, 21))
    (node,) = of(tmp_path, broker_1=text)
    assert [mark.seconds for mark in node.marks] == [0.0, 20.0]
    assert (node.kinds[0].count, node.kinds[0].first_ns) == (4, -3 * S)


def test_nothing_is_summarised_without_a_start_or_warnings(tmp_path: Path) -> None:
    """A node without warnings is left out, and so are all if the run's start is unknown."""
    assert of(tmp_path, broker_1=kafka(1, "INFO", "up"), zookeeper="java.lang.Error\n") == []
    assert of(tmp_path, None, broker_1=kafka(1, "WARN", "late")) == []


def test_a_secret_is_masked(tmp_path: Path) -> None:
    """Texts have no secrets and no characters that change the direction of text."""
    line = "sasl.password=hunter2, \u202eb " + "x" * 400
    (node,) = of(tmp_path, broker_1=kafka(1, "WARN", line))
    for shown in (node.kinds[0].sample, node.marks[0].text):
        assert "hunter2" not in shown
        assert "\u202e" not in shown
        assert len(shown) <= node_warnings.CHARACTERS


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_kinds_do_not_depend_on_numbers(one: int, other: int) -> None:
    """Numbers, addresses of objects and ids of sessions and topics are no part of a kind."""
    form = "WARN [Broker id={0}] t-{0} of 7VRUTFXyRgOg6-bzcye0Xg{0}, Lambda$1/0x{0:x}@1b2c3d4e"
    assert node_warnings.kind_text(form.format(one)) == node_warnings.kind_text(form.format(other))
    assert node_warnings.kind_text("WARN a") != node_warnings.kind_text("WARN b")
