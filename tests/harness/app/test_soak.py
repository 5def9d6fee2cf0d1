"""Reports have what happened in each interval, and no event of another one."""

from pathlib import Path

import msgspec
import pytest

from harness.app import soak
from harness.app.memory_use import MemoryUse
from model.op import NEMESIS, RECOVER, Op


def _reports(folder: Path) -> list[soak.Report]:
    lines = (folder / soak.FILE).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=soak.Report) for line in lines]


class _Events:
    """Feeds operations to the reports, with times in seconds."""

    def __init__(self, hourly: soak.Hourly) -> None:
        self._hourly, self._index = hourly, 0

    def __call__(
        self,
        at_s: float,
        process: int,
        kind: str,
        f: str,
        value: object = None,
        error: str | None = None,
    ) -> None:
        op = Op(index=self._index, time_ns=int(at_s * 1e9), process=process, type=kind, f=f,  # type: ignore[arg-type]
                value=value, error=error)  # fmt: skip
        self._index += 1
        self._hourly(op)


def test_an_interval_is_reported_when_the_next_one_begins(tmp_path: Path) -> None:
    """Counts, latencies and memory belong to one interval; the last one is reported at the end."""
    said: list[str] = []
    sizes = iter([MemoryUse(100.0, 600.0), MemoryUse(101.0), MemoryUse(102.0)])
    hourly = soak.Hourly(tmp_path, every_s=10.0, say=said.append, measure=lambda: next(sizes))
    event = _Events(hourly)
    event(1, 0, "invoke", "send", [["send", "x-0", 1], ["send", "x-0", 2]])
    event(1.5, 0, "ok", "send", [["send", "x-0", [0, 1]], ["send", "x-0", [1, 2]]])
    event(2, NEMESIS, "invoke", "kill", {"id": 1, "phase": "apply"})
    event(3, NEMESIS, "info", "kill", {"id": 1, "phase": "apply"})
    event(4, 9, "invoke", "poll", [["poll"]])
    event(9, 9, "ok", "poll", [["poll", {"x-0": [[0, 1], [1, 2]]}]])
    assert said == []
    event(21, 0, "invoke", "send", [["send", "x-0", 3]])
    event(22, 0, "info", "send", [["send", "x-0", 3]])
    hourly.close()
    first, second, third = _reports(tmp_path)
    assert (first.ops, first.ok, first.acked, first.read, first.faults) == (2, 2, 2, 2, 1)
    assert first.latency_ms["max"] == 500.0
    assert first.latency_ms["p50"] == pytest.approx(500, rel=0.13)
    assert first.memory_mb == MemoryUse(100.0, 600.0)
    assert (second.from_s, second.to_s, second.ops) == (10.0, 20.0, 0)
    assert (third.ops, third.info, third.latency_ms) == (1, 1, {})
    assert [line.split(":")[0] for line in said] == [
        "report 1, until 0",
        "report 2, until 0",
        "report 3, until 0",
    ]


def test_a_fault_counts_once_and_if_it_was_applied(tmp_path: Path) -> None:
    """A fault that is applied again, or cannot be applied, does not count; one that is later does.

    Neither do heals, nor events that are no faults of the schedule.
    """
    hourly = soak.Hourly(tmp_path, every_s=10.0, measure=lambda: MemoryUse(1.0))
    event = _Events(hourly)
    event(1, NEMESIS, "info", "kill", {"id": 1, "phase": "apply"}, "NodeError: no")
    event(2, NEMESIS, "info", "kill", {"id": 1, "phase": "apply"})
    event(3, NEMESIS, "info", "pause", {"id": 2, "phase": "apply"}, "timeout")
    event(4, NEMESIS, "info", "kill", {"id": 1, "phase": "heal"})
    event(5, NEMESIS, "info", RECOVER, {"recovered": True})
    event(11, NEMESIS, "info", "kill", {"id": 1, "phase": "apply"})
    event(12, NEMESIS, "info", "kill", {"id": 3, "phase": "apply"})
    hourly.close()
    assert [report.faults for report in _reports(tmp_path)] == [1, 1]


def test_a_run_without_events_has_no_report(tmp_path: Path) -> None:
    """The file exists, and is empty."""
    hourly = soak.Hourly(tmp_path)
    hourly.close()
    assert _reports(tmp_path) == []


def test_quantiles_are_exact_to_a_step(tmp_path: Path) -> None:
    """Of a thousand writes of 1 to 1000 ms, half take up to 500 ms, and 99 % up to 990 ms."""
    hourly = soak.Hourly(tmp_path, measure=lambda: MemoryUse(1.0))
    event = _Events(hourly)
    for ms in range(1, 1001):
        event(ms * 2, 0, "invoke", "send", [["send", "x-0", ms]])
        event(ms * 2 + ms / 1000, 0, "ok", "send", [["send", "x-0", [ms, ms]]])
    hourly.close()
    [report] = _reports(tmp_path)
    assert report.latency_ms["p50"] == pytest.approx(500, rel=0.13)
    assert report.latency_ms["p99"] == pytest.approx(990, rel=0.13)
    assert report.latency_ms["max"] == pytest.approx(1000)
