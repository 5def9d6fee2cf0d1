"""The znodes of abandoned sessions are looked for, so that their end is seen."""

import random

from tests.workloads.conftest import simulate
from tests.workloads.zookeeper import lab
from tests.workloads.zookeeper.naive import Naive
from workloads.zookeeper.sessions import WORKLOAD


def test_abandoned_znodes_are_looked_for() -> None:
    """Also at a high rate they are read for longer than a session lasts, and those of closed
    sessions are not."""
    plan = lab.plan_of("zk-sessions", rate_hz=100.0, options={"end_p": 0.02})
    ops = simulate(WORKLOAD.main(plan), Naive(random.Random(1)).answer)
    own: dict[int, str] = {}
    ended: dict[str, dict[str, int]] = {"abandon": {}, "close": {}}
    read: dict[str, int] = {}
    for op in ops:
        if op.f == "create" and op.type == "ok":
            own[op.process] = op.value["created"]
        elif op.f in ended and op.type != "invoke":
            ended[op.f][own[op.process]] = op.time_ns
        elif op.f == "get" and op.type == "invoke":
            read[op.value["path"]] = op.time_ns
    late_ns = 4 * 10**9
    late = {
        f: [path for path, at in paths.items() if read.get(path, 0) > at + late_ns]
        for f, paths in ended.items()
    }
    assert len(late["abandon"]) > len(ended["abandon"]) / 2 > 1
    assert late["close"] == []
