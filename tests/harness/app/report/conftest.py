"""Fixtures that make realistic folders of runs from a seed."""

import heapq
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model import history
from model.finding import Finding
from model.op import NEMESIS, Op, OpType
from model.plan import Plan

Kind = Literal["valid", "invalid", "unknown"]
KEYS = [f"orders-{number}" for number in range(6)]
LOSS_AT = 23.0
END = 60.0
STRUCK: list[tuple[str, Any, float, float, str]] = [
    ("partition-one", ["broker-2"], 4.0, 9.5, "probe broker-1 to broker-2 unanswered in 500 ms"),
    ("kill", ["broker-1"], 13.0, 18.2, "process 4711 is gone"),
    ("pause", ["broker-3"], 21.0, 27.5, "process state T in /proc/4712/stat"),
    ("partition-one-way", [["broker-1", "broker-3"]], 30.0, 35.0, "bytes stopped, 2 of 2 probes"),
    ("partition-zookeeper", ["broker-2", "zookeeper"], 38.0, 44.0, "probe unanswered in 500 ms"),
    ("kill", ["broker-3"], 40.0, 45.0, "process 4713 is gone"),
    ("partition-clients", ["clients", "broker-1"], 50.0, 54.0, "probe unanswered in 500 ms"),
]


class _Run:
    """Clients that write to and read from lists, with delays during faults."""

    def __init__(self, kind: Kind, sends: int) -> None:
        self.random = random.Random(kind)
        self.kind, self.sends = kind, sends
        self.events: list[Op] = []
        self.logs: dict[str, list[int]] = {key: [] for key in KEYS}
        self.sent_at: dict[int, int] = {}
        self.findings: list[Finding] = []

    def event(
        self, process: int, kind: OpType, f: str, value: Any, now: float, error: str | None = None
    ) -> int:
        index, time_ns = len(self.events), round(now * 1e9)
        op = Op(
            index=index, time_ns=time_ns, process=process, type=kind, f=f, value=value, error=error
        )
        self.events.append(op)
        return index

    def trouble(self, key: str, seconds: float) -> float:
        """Return how long a send at this time waits for the partition's next leader."""
        for place, (_, _, begin, end, _) in enumerate(STRUCK):
            if place % 3 == KEYS.index(key) % 3 and begin <= seconds < begin + 3.1:
                return min(end, begin + 3.1) - seconds
        return 0.0

    def go(self) -> None:
        """Execute all events in the order of time, from a queue."""
        queue: list[tuple[float, int, Callable[[float], object]]] = []
        self.queue, self.number = queue, 0
        for place, (fault, targets, begin, end, _) in enumerate(STRUCK):
            value = {"id": place, "phase": "apply", "targets": targets}
            self.at(begin, partial(self.nemesis, fault, value))
            self.at(end, partial(self.nemesis, fault, value | {"phase": "heal"}))
        for writer, key in enumerate(KEYS):
            self.at(0.2 + writer / 100, partial(self.send, writer, key))
        for reader in (20, 21):
            self.at(0.5, partial(self.poll, reader, dict.fromkeys(KEYS, 0)))
        if self.kind == "invalid":
            self.at(LOSS_AT, self.lose)
        while queue:
            now, _, act = heapq.heappop(queue)
            act(now)
        self.findings = [
            msgspec.structs.replace(finding, ops=(*finding.ops, self.reader_past(finding)))
            for finding in self.findings
        ]

    def reader_past(self, finding: Finding) -> int:
        """Return the first poll that read the finding's offset or a later one."""
        assert finding.offset is not None
        for op in self.events[finding.ops[0] :]:
            if op.type == "ok" and op.f == "poll":
                rows = op.value[0][1].get(finding.key, [[-1, -1]])
                if rows[-1][0] >= finding.offset:
                    return op.index
        raise AssertionError(f"nobody read past {finding}")

    def at(self, seconds: float, act: Callable[[float], object]) -> None:
        self.number += 1
        heapq.heappush(self.queue, (seconds, self.number, act))

    def nemesis(self, fault: str, value: dict[str, Any], now: float) -> None:
        self.event(NEMESIS, "invoke", fault, value, now)
        self.at(now + 0.01, partial(self.event, NEMESIS, "info", fault, value))

    def send(self, writer: int, key: str, now: float) -> None:
        value = len(self.sent_at) + 1
        self.sent_at[value] = -1
        self.event(writer, "invoke", "send", [["send", key, value]], now)
        latency = self.random.lognormvariate(-6.3, 0.5) + self.trouble(key, now)
        self.at(now + latency, partial(self.sent, now, writer, key, value))

    def sent(self, asked: float, writer: int, key: str, value: int, now: float) -> None:
        if now - asked > 3.0 and self.random.random() < 0.7:
            self.event(writer, "info", "send", [["send", key, value]], now, "_MSG_TIMED_OUT")
            writer += 100
        else:
            self.logs[key].append(value)
            told = [["send", key, [len(self.logs[key]) - 1, value]]]
            self.sent_at[value] = self.event(writer, "ok", "send", told, now)
        if now < END:
            pace = len(KEYS) * END / self.sends
            self.at(now + self.random.expovariate(1 / pace), partial(self.send, writer, key))

    def poll(self, reader: int, positions: dict[str, int], now: float) -> None:
        self.event(reader, "invoke", "poll", [["poll"]], now)
        read: dict[str, list[list[int]]] = {}
        for key in KEYS:
            log = self.logs[key]
            fresh = [[at, log[at]] for at in range(positions[key], len(log))]
            if fresh:
                read[key] = fresh
                positions[key] = len(log)
        self.at(now + 0.004, partial(self.event, reader, "ok", "poll", [["poll", read]]))
        if now < END + 2:
            self.at(now + 0.1, partial(self.poll, reader, positions))

    def lose(self, now: float) -> None:
        """Make a leader acknowledge five records alone, which the next leader does not have."""
        for key in ("orders-1", "orders-4"):
            log = self.logs[key]
            for place in range(5):
                offset, value = len(log) + place, len(self.sent_at) + 1
                writer = 50 + int(key[-1])
                self.event(writer, "invoke", "send", [["send", key, value]], now)
                self.sent_at[value] = self.event(
                    writer, "ok", "send", [["send", key, [offset, value]]], now
                )
                self.findings.append(
                    Finding(
                        anomaly="lost-write", key=key, partition=int(key[-1]), offset=offset,
                        value=value, ops=(self.sent_at[value],), faults=(2,), folded=place,
                        why=f"{value} was acknowledged at offset {offset} of {key} to process "
                        f"{writer}, and process 20 read past it without seeing it",
                    )
                )  # fmt: skip
        twice = self.logs["orders-0"]
        twice.append(twice[-1])
        self.findings.append(
            Finding(
                anomaly="duplicate", key="orders-0", partition=0, offset=len(twice) - 1,
                value=twice[-1], ops=(self.sent_at[twice[-1]],), faults=(1, 2),
                why=f"{twice[-1]} is at offsets {len(twice) - 2} and {len(twice) - 1} of orders-0",
            )
        )  # fmt: skip


def write_run(folder: Path, kind: Kind, sends: int) -> Path:
    """Write a run's folder as the harness leaves it, without the page."""
    run = _Run(kind, sends)
    run.go()
    run.findings.append(
        Finding(
            anomaly="nonmonotonic-poll", legal=True, key="orders-2", offset=3, ops=(30,),
            why="process 20 read offset 3 after offset 5, in another assignment",
        )
    )  # fmt: skip
    folder.mkdir(parents=True)
    history.write(folder / "history.jsonl", run.events)
    rows = [
        {
            "id": place, "fault": fault, "targets": targets, "asked_ns": round(begin * 1e9) - 10**6,
            "applied_ns": round(begin * 1e9), "healed_ns": round(end * 1e9),
            "effect": {"proved": kind != "unknown" or place != 4, "how": how},
        }
        for place, (fault, targets, begin, end, how) in enumerate(STRUCK)
    ]  # fmt: skip
    encoder = msgspec.json.Encoder()
    (folder / "schedule.jsonl").write_bytes(b"".join(encoder.encode(row) + b"\n" for row in rows))
    plan = Plan(
        nemesis=("kill", "partition", "pause"), seed=7, rate_hz=400.0, commit="0f" * 20,
        mutants=("ack-on-local-append",) if kind == "invalid" else (),
        broker={"min.insync.replicas": "2", "ssl.key.password": "hunter2"},
        producer={"enable.idempotence": "true", "acks": "all"},
        versions={"python": "3.11.7", "librdkafka": "2.10.0"}, options={"topic": "orders"},
    )  # fmt: skip
    (folder / "plan.json").write_bytes(encoder.encode(plan))
    anomalies: dict[str, int] = {}
    for finding in run.findings:
        if not finding.legal:
            anomalies[finding.anomaly] = anomalies.get(finding.anomaly, 0) + 1
    types = [op.type for op in run.events if op.process != NEMESIS]
    verdict = {
        "valid": {"valid": True, "invalid": False, "unknown": "unknown"}[kind],
        "anomalies": anomalies,
        "allowed": {"nonmonotonic-poll": 1},
        "evidence": {
            "ops": len(types) - types.count("invoke"), "ok": types.count("ok"),
            "fail": types.count("fail"), "info": types.count("info"), "acked": len(run.sent_at),
            "read": len(run.sent_at), "keys": 6, "keys_caught_up": 4 if kind == "unknown" else 6,
            "faults": 7, "faults_effective": 6 if kind == "unknown" else 7,
        },
        "unknown_because": [
            "2 of 6 keys were not read to their end: orders-2, orders-5",
            "fault 4 (partition-zookeeper) had no measured effect",
        ] if kind == "unknown" else [],
        "checkers": {
            "loss": {"valid": "lost-write" not in anomalies, "seconds": 1.9},
            "duplicates": {"valid": "duplicate" not in anomalies, "seconds": 0.4},
            "order": {"valid": True, "seconds": 0.7},
        },
        "plan": {"workload": "idempotent", "target": "processes", "seed": 7},
    }  # fmt: skip
    (folder / "verdict.json").write_bytes(encoder.encode(verdict))
    pq.write_table(
        pa.Table.from_pylist(msgspec.to_builtins(run.findings)), folder / "findings.parquet"
    )
    return folder


@pytest.fixture
def run_folder(tmp_path: Path) -> Callable[..., Path]:
    """Make a run's folder: ``run_folder("invalid", sends=500)``."""

    def make(kind: Kind, sends: int = 500) -> Path:
        return write_run(tmp_path / f"20261120T160000Z-idempotent-seed7-{kind}", kind, sends)

    return make
