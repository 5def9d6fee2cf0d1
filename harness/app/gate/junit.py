"""Writes a gate as JUnit XML, which every CI system reads: one test suite with all cases.

An invalid case is a failure (of the broker). A case that is unknown, failed, or was skipped without
an excuse is an error (of the test).
"""

import re
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from harness.app.gate import console
from harness.app.gate.outcome import Case, Gate
from harness.systems.catalogue import OURS

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot contain even escaped; a broker's log lines may have them."""


def encode(gate: Gate, folder: Path) -> bytes:
    """Return the file's content; ``folder`` is the gate's."""
    suite = TestSuite(gate.suite)
    suite.timestamp = gate.began.removesuffix("Z")
    for name, value in _properties(gate).items():
        suite.add_property(name, _legal(value))
    for case in gate.cases:
        suite.add_testcase(_case(gate, case, folder))
    if not gate.finished:
        missing = gate.planned - len(gate.cases)
        ended = TestCase("the whole suite", f"faultline.{gate.suite}")
        ended.result = [Error(f"the gate did not finish: {missing} cases did not run")]
        suite.add_testcase(ended)
    document = JUnitXml(f"faultline {gate.suite}")
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    encoded: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return encoded


def _properties(gate: Gate) -> dict[str, str]:
    """Return the suite's properties, without empty ones."""
    values = {
        "commit": gate.commit,
        "seed": "" if gate.seed is None else str(gate.seed),
        "mutants": ", ".join(gate.mutants),
        "systems": "" if gate.systems == (OURS,) else ", ".join(gate.systems),
        **gate.versions,
    }
    return {name: value for name, value in values.items() if value}


def _case(gate: Gate, case: Case, folder: Path) -> TestCase:
    test_case = TestCase(_legal(case.name), f"faultline.{gate.suite}", round(case.seconds, 3))
    test_case.result = _results(case)
    test_case.system_out = _legal("\n".join(_out(case, folder)))
    return test_case


def _results(case: Case) -> list[FinalResult]:
    message = _legal(case.why[0] if case.why else case.status)
    match case.status:
        case "valid":
            return []
        case "skipped" if case.excused:
            return [Skipped(message)]
        case "invalid":
            result: Failure | Error = Failure(message, ", ".join(case.anomalies))
        case "unknown" | "failed" | "skipped":
            result = Error(message, case.status)
    result.text = _legal("\n".join(case.why))
    return [result]


def _out(case: Case, folder: Path) -> list[str]:
    """Return the case's figures, its folder and the command that repeats it."""
    if case.status == "skipped":
        return list(case.why)
    named = zip(console.COLUMNS, console.figures(case), strict=True)
    lines = [", ".join(f"{name} {value}" for name, value in named)]
    if case.system != OURS:
        lines.append(f"system: {case.system}")
    if case.mutants:
        lines.append(f"planted bugs: {', '.join(case.mutants)}")
    if case.folder is not None:
        lines += [f"folder: {folder / case.folder}", f"repeat: {console.replay(case, folder)}"]
    return lines


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
