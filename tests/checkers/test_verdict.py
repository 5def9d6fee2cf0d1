import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from checkers import findings, inline, overview
from checkers.expectations import Contract
from checkers.kernels import history_kernels, key
from checkers.kernels.found import Found
from checkers.kernels.log import Log
from checkers.verdict import Verdict, conclude, crashed, exit_status, merge
from model.node_sign import NodeSign
from model.op import Op
from model.plan import Plan, ScheduledFault
from model.violation import Record, Violation, Watched


def verdict(
    histories: Any,
    text: str | list[Op],
    *,
    run: bool = False,
    signs: Sequence[NodeSign] = (),
    **settings: str,
) -> Verdict:
    tables = histories.tables(text)
    reports = inline.judge(tables, lambda done: None)
    contract = Contract.of(None, {f"producer.{name}": value for name, value in settings.items()})
    judged = history_kernels.judge(tables, [f for report in reports.values() for f in report.found])
    results = findings.findings(judged.found, overview.of(tables), contract)
    return conclude(
        overview.of(tables),
        reports,
        results,
        run=Plan() if run else None,
        plan={"seed": 7},
        of_history=judged.checker_runs,
        signs=signs,
    )


@pytest.mark.parametrize(
    ("several", "worst"),
    [
        ([], True),
        ([True, True], True),
        ([True, "unknown"], "unknown"),
        (["unknown", False, True], False),
    ],
)
def test_merge(several: list[Any], worst: Any) -> None:
    """The worst verdict is returned, by true < unknown < false."""
    assert merge(several) == worst


@pytest.mark.parametrize(("valid", "status"), [(True, 0), (False, 1), ("unknown", 2)])
def test_exit_status(valid: Any, status: int) -> None:
    """The exit status is 0 for valid, 1 for invalid and 2 for unknown."""
    assert exit_status(Verdict(valid=valid)) == status


@pytest.mark.parametrize(
    ("text", "valid", "reasons"),
    [
        ("s:x=a@0 p:x=a@0", True, []),
        ("s:x=a@0 s:x=b@1 p:x=b@1", False, []),
        ("a:x", "unknown", ["no operation was acknowledged"]),
        ("s?:x=a p:", "unknown", ["no operation was acknowledged"]),
        ("k:x@1", True, []),  # a committed offset is evidence, too
        ("k?:x@1", "unknown", ["no operation was acknowledged"]),
        (
            "s:x=a@0 s:x=b@1 p:x=a@0",
            "unknown",
            [
                "not read to the end: x",
                "1 acknowledged records were not read, and no reader went past them",
            ],
        ),
        ("s:x=a@0 p:x=a@0 c!:x@1", "unknown", ["not read to the end: x"]),
        (  # whatever is unknown of the rest
            "s:x=a@0 s:x=b@1 p:x=b@1 s:y=c@0",
            False,
            [
                "not read to the end: y",
                "1 acknowledged records were not read, and no reader went past them",
            ],
        ),
    ],
)
def test_a_bare_history(histories: Any, text: str, valid: Any, reasons: list[str]) -> None:
    """A bare history is valid only if something was acknowledged, and all of it read or read
    past."""
    judged = verdict(histories, text)
    assert (judged.valid, list(judged.unknown_because)) == (valid, reasons)


def test_a_run_must_have_read_every_key_to_its_end(histories: Any) -> None:
    """Without a final catch-up (the harness was killed) a run is unknown, whatever was read."""
    assert verdict(histories, "s:x=a@0 p:x=a@0", run=True).valid == "unknown"
    assert verdict(histories, "s:x=a@0 p:x=a@0 c:x@1", run=True).valid is True


def fault_ops(at: int, *, proved: bool) -> list[Op]:
    value = {"id": 4, "phase": "apply", "targets": None}
    effect = {"effect": {"proved": proved, "how": "still answering"}}
    return [
        Op(index=at, time_ns=at * 10**9, process=-1, type="invoke", f="pause", value=value),
        Op(
            index=at + 1,
            time_ns=at * 10**9,
            process=-1,
            type="info",
            f="pause",
            value=value | effect,
        ),
    ]


def test_a_fault_without_effect_makes_a_run_unknown(histories: Any) -> None:
    """A fault without a proved effect makes a run unknown."""
    ops = histories.events("s:x=a@0 p:x=a@0")
    assert verdict(histories, ops + fault_ops(4, proved=True)).valid is True
    judged = verdict(histories, ops + fault_ops(4, proved=False))
    assert judged.valid == "unknown"
    assert judged.unknown_because == (
        "fault 4 (pause) is not proved to have had an effect: still answering",
    )
    assert (judged.evidence["faults"], judged.evidence["faults_effective"]) == (1, 0)


def test_a_crashed_checker_makes_it_unknown(
    histories: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checker that crashes makes the verdict unknown, because it has excluded nothing."""

    def explode(log: Log) -> list[Found]:
        raise ZeroDivisionError("no")

    monkeypatch.setitem(key.DERIVED, "polls", explode)
    judged = verdict(histories, "s:x=a@0 s?:x=b p:x=a@0")
    assert judged.valid == "unknown"
    assert judged.unknown_because == ("the checker polls crashed on x: ZeroDivisionError: no",)
    assert judged.checkers["polls"].valid == "unknown"
    assert judged.checkers["loss"].valid is True


def test_what_is_permitted_is_counted_and_no_reason_to_fail(histories: Any) -> None:
    """What the contract permits is counted, and does not make the verdict invalid."""
    text = "s:x=a@0 s:x=b@1 s:x=c@2 p:x=c@2"
    strict, loose = verdict(histories, text), verdict(histories, text, acks="1")
    assert (strict.valid, strict.anomalies, strict.allowed) == (False, {"lost-write": 2}, {})
    assert (loose.valid, loose.anomalies, loose.allowed) == (True, {}, {"lost-write": 2})
    assert strict.checkers["loss"].valid is False
    assert loose.checkers["loss"].valid is True


def test_evidence_counts_completions_and_records(histories: Any) -> None:
    """Operations by outcome, records acknowledged and read, keys, and those read to the end."""
    judged = verdict(histories, "a:x,y s:x=a@0,x=b@1 s1?:y=c s2!:x=d >s3:x=e p:x=a@0,x=b@1 c:x@2")
    assert judged.evidence == {
        "ops": 6,
        "ok": 4,
        "fail": 1,
        "info": 1,
        "acked": 2,
        "read": 2,
        "keys": 2,
        "keys_caught_up": 2,
        "faults": 0,
        "faults_effective": 0,
    }


def test_findings_blame_the_faults_between_their_witnesses(histories: Any) -> None:
    """A finding has the faults that were active between its first and its last witness.

    A write counts from its invocation, because it may have waited during a fault for an answer that
    came after the heal.
    """
    ops = histories.events("s:x=a@0 s:x=b@1 p:x=b@1")
    value = {"id": 4, "phase": "apply"}
    proof = {"effect": {"proved": True, "how": ""}}
    heal = {"id": 4, "phase": "heal"}

    def at(index: int, kind: Any, what: dict[str, Any]) -> Op:
        return Op(index=index, time_ns=index * 10**9, process=-1, type=kind, f="kill", value=what)

    def moved(op: Op, by: int) -> Op:
        fields = {f: getattr(op, f) for f in op.__struct_fields__}
        return Op(**fields | {"index": op.index + by, "time_ns": (op.index + by) * 10**9})

    fault = [at(0, "invoke", value), at(1, "info", value | proof)]
    healed = [at(2, "invoke", heal), at(3, "info", heal)]
    before = histories.tables([*fault, *healed, *(moved(op, 4) for op in ops)])
    during = histories.tables([*fault, *(moved(op, 2) for op in ops)])
    awaited = [moved(op, 1) for op in (*fault, *healed)]
    waiting = histories.tables([ops[0], *awaited, *(moved(op, 4) for op in ops[1:])])
    for tables, faults in ((before, ()), (during, (4,)), (waiting, (4,))):
        reports = inline.judge(tables, lambda done: None)
        (found,) = findings.findings(reports["x"].found, overview.of(tables), Contract())
        assert found.faults == faults


def test_json_is_as_the_contract_has_it(histories: Any) -> None:
    """``verdict.json`` has every field that scripts rely on."""
    judged = json.loads(verdict(histories, "s:x=a@0 p:x=a@0").to_json())
    assert judged["valid"] is True
    assert judged["plan"] == {"seed": 7}
    assert judged["checkers"]["loss"].keys() == {"valid", "seconds", "judged"}
    assert judged.keys() >= {"anomalies", "allowed", "evidence", "unknown_because"}


def test_a_crash_of_judging_itself_is_unknown() -> None:
    """A crash of judging itself is unknown, with its reason and without anomalies."""
    judged = crashed("the checkers crashed: MemoryError: ", {})
    assert (judged.valid, judged.anomalies) == ("unknown", {})
    assert judged.unknown_because == ("the checkers crashed: MemoryError: ",)


GOOD = "s:x=a@0 p:x=a@0 c:x@1"


def of_nemesis(at: int, f: str, **value: Any) -> Op:
    return Op(index=at, time_ns=at * 10**9, process=-1, type="info", f=f, value=value)


def crash(at: int, *, serves: bool = True, status: int = 1) -> Op:
    line = "ERROR broker_impl: storage failed"
    return of_nemesis(at, "crash", node="broker-2", serves=serves, status=status, last_line=line)


def test_a_node_that_ends_by_itself_is_a_finding(histories: Any) -> None:
    """A node that exits by itself is a finding for each crash, even with unclean elections."""
    ops = histories.events(GOOD)
    judged = verdict(histories, [*ops, *fault_ops(6, proved=True), crash(8), crash(9)], run=True)
    assert (judged.valid, judged.anomalies) == (False, {"crash": 2})
    assert [name for name, of in judged.checkers.items() if of.valid is False] == ["crashes"]
    tables = histories.tables([*ops, *fault_ops(6, proved=True), crash(8)])
    (finding,) = findings.findings([], overview.of(tables), Contract(unclean_elections=True))
    assert (finding.legal, finding.ops, finding.faults) == (False, (8,), (4,))
    assert finding.why.startswith("broker-2 exited unexpectedly with exit status 1 at 8.000 s; its")
    assert finding.why.endswith("ERROR broker_impl: storage failed")


def silent(at: int, node: str = "controller-2") -> Op:
    return of_nemesis(at, "unresponsive", node=node, for_s=30.0)


def healed(at: int) -> Op:
    return of_nemesis(at, "pause", id=4, phase="heal", effect={"proved": True, "how": "runs"})


def test_a_node_that_runs_and_answers_nothing_is_a_finding(histories: Any) -> None:
    """Each node that is silent after all heals is a finding."""
    ops = [*histories.events(GOOD), *fault_ops(6, proved=True), healed(8)]
    judged = verdict(histories, [*ops, silent(9), silent(10, "controller-1")], run=True)
    assert (judged.valid, judged.anomalies) == (False, {"unresponsive": 2})
    assert [name for name, of in judged.checkers.items() if of.valid is False] == ["crashes"]
    (finding,) = findings.findings([], overview.of(histories.tables([*ops, silent(9)])), Contract())
    assert (finding.legal, finding.ops) == (False, (9,))
    assert finding.why.startswith(
        "controller-2 runs, and answered no probe for 30 s, until 9.000 s"
    )


@pytest.mark.parametrize(
    "others",
    [
        [],
        [healed(10)],
        [healed(8), crash(10, serves=False)],
        [healed(8), crash(10, status=-9)],
    ],
    ids=["not healed", "healed later", "a proxy has ended", "killed from outside"],
)
def test_silence_that_has_another_reason_is_no_finding(histories: Any, others: list[Op]) -> None:
    """A fault that still lasted, a proxy that died or a SIGKILL from outside may be the reason."""
    ops = [*histories.events(GOOD), *fault_ops(6, proved=True), *others, silent(9)]
    ordered = sorted(ops, key=lambda op: op.index)
    assert verdict(histories, ordered, run=True).anomalies == {}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (crash(6, status=-9), "broker-2 was killed from outside at 6.000 s"),
        (
            crash(6, serves=False),
            "broker-2 exited unexpectedly at 6.000 s: ERROR broker_impl: storage failed",
        ),
        (
            of_nemesis(6, "recover", recovered=False),
            "the cluster did not recover after all faults were healed",
        ),
    ],
)
def test_what_happens_to_the_test_itself_makes_it_unknown(
    histories: Any, event: Op, reason: str
) -> None:
    """What disturbs the test makes the verdict unknown: a SIGKILL from outside, a proxy that died,
    a cluster that did not recover."""
    judged = verdict(histories, [*histories.events(GOOD), event], run=True)
    assert judged.valid == "unknown"
    assert reason in judged.unknown_because
    assert judged.anomalies == {}


def test_final_reads_of_a_cluster_that_has_not_recovered_prove_nothing(histories: Any) -> None:
    """Final reads of a cluster that has not recovered prove no loss, because a former leader may
    show a lower end."""
    text = "s:x=a@0 s:x=b@1 a2:x p2:x=a@0 c2:x@1"
    ops = histories.events(text)
    assert verdict(histories, ops, run=True).anomalies == {"lost-write": 1}
    whole = of_nemesis(len(ops), "recover", recovered=True)
    assert verdict(histories, [*ops, whole], run=True).anomalies == {"lost-write": 1}
    never = of_nemesis(len(ops), "recover", recovered=False)
    judged = verdict(histories, [*ops, never], run=True)
    assert (judged.valid, judged.anomalies) == ("unknown", {})
    assert judged.evidence["keys_caught_up"] == 0


@pytest.mark.parametrize("proved", [True, False])
def test_a_fault_that_is_not_healed_makes_a_run_unknown(histories: Any, proved: bool) -> None:
    """A fault that is not healed makes a run unknown, unless a later heal is proved."""

    def heal(at: int, *, proved: bool) -> Op:
        effect = {"proved": proved, "how": "1 of 2 links answer again"}
        return of_nemesis(at, "pause", id=4, phase="heal", effect=effect)

    ops = [*histories.events(GOOD), *fault_ops(6, proved=True), heal(8, proved=False)]
    judged = verdict(histories, [*ops, heal(9, proved=proved)], run=True)
    assert judged.valid == (True if proved else "unknown")
    assert judged.unknown_because == (
        () if proved
        else ("fault 4 (pause) is not proved to have been healed: 1 of 2 links answer again",)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("at_s", "options", "late_ms", "words"),
    [
        (0.0, {}, 5000, ": the schedule of faults ran up to 5.0 s late"),
        (4.5, {}, 500, ""),
        (0.0, {"when": "commit"}, 0, ""),
        (0.0, {"once": {"key": "x-0"}}, 0, ""),
        (9.0, {}, 0, ""),
    ],
)
def test_a_schedule_that_ran_late_says_by_how_much(
    histories: Any, at_s: float, options: dict[str, Any], late_ms: int, words: str
) -> None:
    """The largest delay of a fault behind its plan is evidence, and a reason for missing faults.

    A fault that waits for a moment of the workload or a state of the cluster is late on purpose.
    """
    applied = [
        msgspec.structs.replace(op, time_ns=5_000_000_000) for op in fault_ops(6, proved=True)
    ]
    tables = histories.tables([*histories.events(GOOD), *applied])
    schedule = (
        ScheduledFault(id=4, at_s=at_s, duration_s=1, fault="pause", options=options),
        ScheduledFault(id=5, at_s=6, duration_s=1, fault="kill"),
    )
    judged = conclude(
        overview.of(tables),
        inline.judge(tables, lambda done: None),
        [],
        run=Plan(nemesis=("pause",), schedule=schedule),
        plan={},
    )
    assert judged.evidence["faults_late_ms"] == late_ms
    assert judged.unknown_because == (f"fault 5 (kill) was never applied{words}",)


def test_a_planned_fault_that_never_came_makes_a_run_unknown(histories: Any) -> None:
    """A planned fault that is not in the history makes a run unknown."""
    tables = histories.tables([*histories.events(GOOD), *fault_ops(6, proved=True)])
    reports = inline.judge(tables, lambda done: None)

    def reasons(nemesis: tuple[str, ...], *numbers: int) -> tuple[str, ...]:
        schedule = tuple(
            ScheduledFault(id=number, at_s=6, duration_s=1, fault="pause") for number in numbers
        )
        run = Plan(nemesis=nemesis, schedule=schedule)
        return conclude(overview.of(tables), reports, [], run=run, plan={}).unknown_because

    assert reasons(("pause",), 4) == ()
    assert reasons(("pause",), 4, 5) == ("fault 5 (pause) was never applied",)
    assert reasons(("pause",), 4, 5, 6) == ("2 faults were never applied: 5 (pause), 6 (pause)",)
    assert reasons(()) == ()
    assert reasons(("pause", "kill")) == (
        "no fault was scheduled, although the plan has pause, kill",
    )


@pytest.mark.parametrize(
    ("must_be_watched", "reasons"),
    [(True, ("the brokers' state was not watched",)), (False, ())],
)
def test_a_run_that_must_be_watched_is_unknown_without_a_record(
    histories: Any, must_be_watched: bool, reasons: tuple[str, ...]
) -> None:
    """A run on a target that always watches is unknown without the records of white-box checks."""
    tables = histories.tables("s:x=a@0 p:x=a@0 c:x@1")
    reports = inline.judge(tables, lambda done: None)
    judged = conclude(
        overview.of(tables), reports, [], run=Plan(), plan={}, must_be_watched=must_be_watched
    )
    assert judged.unknown_because == reasons


@pytest.mark.parametrize(
    ("seen", "end", "valid", "anomalies", "reasons"),
    [
        ((), 5, True, {}, ()),
        ((), None, "unknown", {}, ("the brokers' state was not watched to the end",)),
        ((("log-matching", 1), ("log-matching", 2)), 5, False, {"invariant:log-matching": 2}, ()),
        ((("stuck", None),), 5, False, {"stuck": 1}, ()),
    ],
)
def test_what_white_box_checks_saw_is_never_legal(
    histories: Any,
    seen: tuple[tuple[str, int | None], ...],
    end: int | None,
    valid: Any,
    anomalies: dict[str, int],
    reasons: tuple[str, ...],
) -> None:
    """What white-box checks saw is never legal, and a watch that was cut short makes no run
    valid."""
    tables = histories.tables([*histories.events(GOOD), *fault_ops(6, proved=True)])
    reports = inline.judge(tables, lambda done: None)
    violations = tuple(
        Violation(invariant=name, time_ns=6 * 10**9, key="x-1", offset=offset, why="so it was")
        for name, offset in seen
    )
    results = findings.findings([], overview.of(tables), Contract(acks="0"), violations)
    watched = Record(violations, None if end is None else Watched(snapshots=end, until_ns=9))
    judged = conclude(overview.of(tables), reports, results, run=None, plan={}, watched=watched)
    assert (judged.valid, judged.anomalies, judged.unknown_because) == (valid, anomalies, reasons)
    assert judged.evidence["snapshots"] == (end or 0)
    assert judged.checkers["invariants"].valid == ("invariant:log-matching" not in anomalies)
    for finding in results:
        assert (finding.key, finding.partition, finding.why) == (
            *("x-1", 1),
            "so it was (seen at 6.000 s)",
        )
        assert finding.faults == (4,), "the fault that was active then"


def test_a_sign_of_a_broken_node_makes_a_run_unknown(histories: Any) -> None:
    """A broker that ran out of memory and continued makes the verdict unknown; with a loss it is
    still invalid."""
    sign = NodeSign(node="broker-2", kind="out-of-memory", time_ns=7, last_ns=7, line="Java heap")
    for text, valid in ((GOOD, "unknown"), ("s:x=a@0 s:x=b@1 a2:x p2:x=a@0 c2:x@2", False)):
        judged = verdict(histories, text, signs=[sign])
        assert judged.valid == valid
        assert "broker-2 was out of memory at 0.000 s: Java heap" in judged.unknown_because
    assert verdict(histories, GOOD, signs=[]).valid is True
