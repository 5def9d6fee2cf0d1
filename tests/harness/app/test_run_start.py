"""The time of day of a run's second 0."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.app import run_start
from harness.app.run_start import RunStart

STARTED_NS = 1_763_839_467_205_123_456


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """The start is kept to the microsecond, in UTC, with the name of its clock."""
    run_start.write(tmp_path, STARTED_NS, simulated=False)
    start = run_start.read(tmp_path)
    assert start == RunStart(datetime(2025, 11, 22, 19, 24, 27, 205123, tzinfo=UTC), "system")
    assert (tmp_path / "run.json").read_text() == (
        '{"started":"2025-11-22T19:24:27.205123Z","clock":"system"}\n'
    )


@given(st.integers(0, 4_000_000_000_000_000_000), st.integers(0, 10**15))
def test_an_event_has_its_time_of_day(wall_ns: int, time_ns: int) -> None:
    """The time of day of an event is the start plus the event's own time."""
    started = datetime.fromtimestamp(wall_ns // 10**9, UTC)
    at = RunStart(started).at(time_ns)
    assert at is not None
    assert abs((at - started).total_seconds() - time_ns / 1e9) < 1e-3


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b'{"started":"2025-11-22T19:2',
        b"[]",
        b'{"started":1763839467}',
        b'{"started":"2025-11-22T19:24:27"}',
        b'{"started":"2025-11-22T19:24:27Z","clock":"sundial"}',
        b'{"started":"0001-01-01T00:00:00+10:00"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_start_that_cannot_be_read_is_unknown(content: bytes | None, tmp_path: Path) -> None:
    """A start that cannot be read is unknown, and the rest of the folder stays readable."""
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    assert run_start.read(tmp_path) is None


def test_a_time_beyond_the_calendar_is_unknown() -> None:
    """A time beyond the calendar, which a history may hold, has no time of day."""
    assert RunStart(datetime(9999, 12, 31, tzinfo=UTC)).at(2**62) is None
