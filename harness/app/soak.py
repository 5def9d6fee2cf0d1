"""Reports on a run of many hours, hour by hour (``faultline soak``).

A report is a line of ``soak.jsonl``: what clients did in that hour, how long writes took, which
faults were injected, and how much memory everything had at its end.
"""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.app import memory_use
from harness.app.memory_use import MemoryUse
from harness.engine.recorder import Lines
from model.op import CRASH, NEMESIS, RECOVER, UNRESPONSIVE, Op

FILE = "soak.jsonl"
EVERY_S = 3600.0
_STEPS = 20
"""Into how many steps each tenfold of a latency is divided; a quantile is exact to a step."""
_NO_FAULTS = (RECOVER, CRASH, UNRESPONSIVE)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in one interval of a run."""

    number: int
    """The first report has 1."""
    from_s: float
    to_s: float
    ops: int
    """Completed operations of clients."""
    ok: int
    fail: int
    info: int
    acked: int
    """Records acknowledged."""
    read: int
    """Deliveries of records."""
    faults: int
    """Faults applied, each where it was applied first."""
    latency_ms: dict[str, float]
    """Quantiles of the time that successful sends and transactions took: ``p50``, ``p99``,
    ``max``; empty if there was none."""
    memory_mb: MemoryUse
    """Measured at the end of the interval."""


class Hourly:
    """Observes a recorder, and reports on each interval when the next one begins."""

    def __init__(
        self,
        folder: Path,
        *,
        every_s: float = EVERY_S,
        say: Callable[[str], None] = lambda line: None,
        measure: Callable[[], MemoryUse] = memory_use.measure,
    ) -> None:
        self._lines, self._say, self._measure = Lines(folder / FILE), say, measure
        self._every_ns = int(every_s * 1e9)
        self._number, self._from_ns, self._now_ns = 1, 0, 0
        self._applied: set[int] = set()
        """The faults of the schedule that were applied since the run began."""
        self._begun: dict[int, int] = {}
        """When the open send or transaction of each process was invoked."""
        self._reset()

    def _reset(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._acked = self._read = self._faults = 0
        self._latencies: Counter[int] = Counter()
        """How many writes took about how long, by step."""
        self._longest_ns = 0

    def __call__(self, op: Op) -> None:
        """Count an event; report if it belongs to the next interval."""
        while op.time_ns >= self._from_ns + self._every_ns:
            self._report(self._from_ns + self._every_ns)
        self._now_ns = op.time_ns
        if op.process == NEMESIS:
            self._fault(op)
        elif op.type == "invoke":
            if op.f in ("send", "txn"):
                self._begun[op.process] = op.time_ns
        else:
            self._completed(op)

    def _fault(self, op: Op) -> None:
        """Count a fault when it is applied, and not when it is applied again or cannot be."""
        if op.type == "invoke" or op.f in _NO_FAULTS or op.error is not None:
            return
        if op.value.get("phase") == "apply" and op.value["id"] not in self._applied:
            self._applied.add(op.value["id"])
            self._faults += 1

    def _completed(self, op: Op) -> None:
        self._outcomes[op.type] += 1
        began_ns = self._begun.pop(op.process, None)
        if op.type != "ok" or not isinstance(op.value, list):
            return
        if began_ns is not None:
            took_ns = op.time_ns - began_ns
            self._latencies[_step(took_ns)] += 1
            self._longest_ns = max(self._longest_ns, took_ns)
        for micro_op in op.value:
            if micro_op[0] == "send" and isinstance(micro_op[2], list):
                self._acked += 1
            elif micro_op[0] == "poll" and len(micro_op) > 1 and micro_op[1]:
                self._read += sum(map(len, micro_op[1].values()))

    def _report(self, to_ns: int) -> None:
        report = Report(
            number=self._number,
            from_s=self._from_ns / 1e9,
            to_s=to_ns / 1e9,
            ops=self._outcomes.total(),
            **{kind: self._outcomes[kind] for kind in ("ok", "fail", "info")},
            acked=self._acked,
            read=self._read,
            faults=self._faults,
            latency_ms=self._quantiles(),
            memory_mb=self._measure(),
        )
        self._lines.append(msgspec.json.encode(report) + b"\n")
        self._say(described(report))
        self._number += 1
        self._from_ns = to_ns
        self._reset()

    def _quantiles(self) -> dict[str, float]:
        total = self._latencies.total()
        if not total:
            return {}
        found = {}
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            wanted, seen = share * total, 0
            for step in sorted(self._latencies):
                seen += self._latencies[step]
                if seen >= wanted:
                    found[name] = round(10 ** (step / _STEPS) / 1e6, 3)
                    break
        return {**found, "max": round(self._longest_ns / 1e6, 3)}

    def close(self) -> None:
        """Report on the last interval, if it has any event, and close the file."""
        if self._now_ns > self._from_ns:
            self._report(self._now_ns)
        self._lines.close()


def _step(ns: int) -> int:
    """Return the number of the step that has this time: 20 steps are a tenfold."""
    return math.ceil(math.log10(max(ns, 1)) * _STEPS)


def described(report: Report) -> str:
    """Return a report as one line."""
    latency, memory = report.latency_ms, report.memory_mb
    share = report.ok / report.ops if report.ops else 0.0
    writes = ", ".join(f"{name} {ms:,.0f} ms" for name, ms in latency.items()) or "none"
    sizes = ", ".join(f"{kind} {mb:,.0f} MB" for kind, mb in memory._asdict().items() if mb)
    return (
        f"report {report.number}, until {_clock(report.to_s)}: {report.ops:,} operations,"
        f" {share:.1%} succeeded, {report.acked:,} records acknowledged, {report.read:,} read;"
        f" writes: {writes}; {report.faults} faults; memory: {sizes}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
