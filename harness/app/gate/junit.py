"""A gate as JUnit XML, which every CI system reads: a test suite of its cases.

Invalid is a failure (the broker's); unknown, failed, and skipped without an excuse are errors (the
test's).
"""

import re
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from harness.app.gate import words
from harness.app.gate.outcome import Case, Gate

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, however it is escaped; a broker's last words may have it."""


def encode(gate: Gate, folder: Path) -> bytes:
    """The file's content; ``folder`` is the gate's."""
    suite = TestSuite(gate.suite)
    suite.timestamp = gate.began.removesuffix("Z")
    for name, value in _properties(gate).items():
        suite.add_property(name, _legal(value))
    for case in gate.cases:
        suite.add_testcase(_case(gate, case, folder))
    if not gate.finished:
        missing = gate.planned - len(gate.cases)
        ended = TestCase("the whole suite", f"faultline.{gate.suite}")
        ended.result = [Error(f"the gate did not reach its end: {missing} cases were not tried")]
        suite.add_testcase(ended)
    document = JUnitXml(f"faultline {gate.suite}")
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    encoded: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return encoded


def _properties(gate: Gate) -> dict[str, str]:
    """Empty values are left out."""
    values = {
        "commit": gate.commit,
        "seed": "" if gate.seed is None else str(gate.seed),
        "mutants": ", ".join(gate.mutants),
        **gate.versions,
    }
    return {name: value for name, value in values.items() if value}


def _case(gate: Gate, case: Case, folder: Path) -> TestCase:
    told = TestCase(_legal(case.name), f"faultline.{gate.suite}", round(case.seconds, 3))
    told.result = _results(case)
    told.system_out = _legal("\n".join(_out(case, folder)))
    return told


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
    """Where to look, and how to see it again."""
    if case.status == "skipped":
        return list(case.why)
    named = zip(words.COLUMNS, words.figures(case), strict=True)
    lines = [", ".join(f"{name} {value}" for name, value in named)]
    if case.mutants:
        lines.append(f"planted: {', '.join(case.mutants)}")
    if case.folder is not None:
        lines += [f"folder: {folder / case.folder}", f"again: {words.replay(case, folder)}"]
    return lines


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
