"""Runs that tested ZooKeeper are judged and reported like those of brokers."""

from pathlib import Path

import msgspec
import pytest

from checkers.kernels.found import Found
from checkers.linearizability.judging import Budget
from checkers.zookeeper import judging, linear
from checkers.zookeeper.calls import History
from harness.app import check, report
from harness.app.cli import main
from model import history
from model.history import BadHistory
from model.op import Op, OpType
from model.plan import Plan

PATH = "/zk-register/r0"


def event(index: int, kind: OpType, f: str, process: int = 0, **value: object) -> Op:
    return Op(
        index=index,
        time_ns=index * 1_000_000,
        process=process,
        type=kind,
        f=f,
        value={"path": PATH, **value},
    )


def stat(version: int) -> dict[str, int]:
    zxids = {"czxid": 1, "mzxid": 10 + version, "pzxid": 1}
    return {**zxids, "version": version, "cversion": 0, "owner": 0}


def events(final: int = 1) -> list[Op]:
    """A creation, a write, and a read at the end that shows this version."""
    asked = {"sync": True, "final": True}
    return [
        event(0, "invoke", "create", data="0"),
        event(1, "ok", "create", data="0", created=PATH, zxid=10),
        event(2, "invoke", "set", data="1", version=-1),
        event(3, "ok", "set", data="1", version=-1, stat=stat(1), zxid=11),
        event(4, "invoke", "get", process=5, **asked),
        event(5, "ok", "get", process=5, **asked, data=str(final), stat=stat(final), zxid=11),
    ]


def run_of(folder: Path, ops: list[Op]) -> Path:
    """A run's folder with this history, on processes."""
    folder.mkdir()
    plan = Plan(workload="zk-register", system="zookeeper", brokers=0)
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    history.write(folder / "history.jsonl", ops)
    return folder


def test_a_valid_run(tmp_path: Path) -> None:
    """The verdict counts what was acknowledged and read; the report calls places znodes."""
    folder = run_of(tmp_path / "run", events())
    verdict = check.judge(folder, inline=False)  # without Spark all the same
    assert verdict.valid is True
    assert verdict.evidence["acked"] == 2
    assert (verdict.evidence["keys_caught_up"], verdict.evidence["keys"]) == (1, 1)
    assert verdict.judged_by["executor"] == "inline"
    assert verdict.contract == {}
    assert verdict.notes == ()
    page = report.render(folder).read_text()
    assert "znodes caught up" in page
    assert "partitions" not in page.partition("</main>")[0].rpartition("<main>")[2]


def test_a_lost_write(tmp_path: Path) -> None:
    """A finding names the znode and its version, and the command ends with status 1."""
    folder = run_of(tmp_path / "run", events(final=0))
    examined = check.examined(folder, inline=True)
    verdict, findings = examined.judged
    assert verdict.valid is False
    assert {"zk-lost-write", "zk-nonlinearizable"} <= verdict.anomalies.keys()
    text = check.describe(verdict, findings, folder)
    assert f"zk-lost-write 1 · znode {PATH}, version 1: event 3 acknowledged" in text
    assert (folder / "findings.parquet").is_file()
    assert "zk-lost-write" in report.render(folder).read_text()
    with pytest.raises(SystemExit) as ended:
        main(["check", str(folder), "--inline"])
    assert ended.value.code == 1


@pytest.mark.parametrize(
    ("ops", "reason"),
    [
        (events()[:1], "no operation was acknowledged"),
        (events()[:4], f"not read to the end: {PATH}"),
    ],
)
def test_too_little_is_unknown(ops: list[Op], reason: str, tmp_path: Path) -> None:
    """A run without an acknowledgement, or without final reads, proves nothing."""
    verdict = check.judge(run_of(tmp_path / "run", ops), inline=True)
    assert verdict.valid == "unknown"
    assert reason in verdict.unknown_because


def test_a_checker_that_crashes_has_found_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others still judge, and the verdict is unknown."""

    def crash(of: History) -> list[Found]:
        raise RuntimeError("no")

    broken = {**judging.KERNELS, "zk-updates": (crash, lambda of: 1)}
    monkeypatch.setattr(judging, "KERNELS", broken)
    verdict = check.judge(run_of(tmp_path / "run", events()), inline=True)
    assert verdict.valid == "unknown"
    assert verdict.checkers["zk-updates"].valid == "unknown"
    assert verdict.checkers["zk-sync"].valid is True
    assert any("zk-updates crashed" in reason for reason in verdict.unknown_because)


def test_values_of_another_shape(tmp_path: Path) -> None:
    """A history that no client of ZooKeeper can have recorded is no reason for a verdict."""
    ops = [Op(index=0, time_ns=0, process=0, type="invoke", f="set", value=[1])]
    verdict = check.judge(run_of(tmp_path / "other", events()), inline=True)
    assert verdict.valid is True
    with pytest.raises(BadHistory, match="the value of set is not an object"):
        check.judge(run_of(tmp_path / "run", ops), inline=True)


def test_a_typed_copy_is_not_enough(tmp_path: Path) -> None:
    """The typed copy has no values of znodes."""
    folder = run_of(tmp_path / "run", events())
    check.judge(folder, inline=True)
    (folder / "history.jsonl").unlink()
    with pytest.raises(BadHistory, match=r"history\.jsonl only"):
        check.judge(folder, inline=True)


def test_such_a_run_is_not_watched(capsys: pytest.CaptureFixture[str]) -> None:
    """The checkers need the whole history."""
    with pytest.raises(SystemExit) as ended:
        main(["run", "--workload", "zk-kv", "--watch"])
    assert ended.value.code == 64
    assert "--watch: zk-kv can be judged only" in capsys.readouterr().err


def test_a_search_that_uses_up_its_budget_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search for an order that does not end has found nothing."""
    monkeypatch.setattr(linear, "BUDGET", Budget(steps=0))
    verdict = check.judge(run_of(tmp_path / "run", events()), inline=True)
    assert verdict.valid == "unknown"
    assert verdict.checkers["zk-linearizable"].valid == "unknown"
    assert any("used up its budget" in reason for reason in verdict.unknown_because)
