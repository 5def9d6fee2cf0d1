"""The table of anomalies has every id that a checker can report."""

import ast
import dataclasses
from pathlib import Path
from typing import Any

import pytest

import checkers
from checkers import anomalies, findings, material, overview, verdict
from checkers.anomalies import UnknownAnomaly
from checkers.anomalies.legality import never
from checkers.expectations import Contract
from checkers.invariants.table import INVARIANTS, VIOLATIONS
from checkers.kernels.found import Found
from model.finding import Finding
from model.violation import BadRecord, Violation
from tests.checkers.anomalies.emitted import Emitted

CHECKERS = Path(checkers.__file__).parent
WITNESSES = CHECKERS.parent / "harness" / "cluster" / "observe"
"""The modules that see the answers of simulated brokers, and report violations by themselves."""
HOLES = """
def kernel(log):
    for name in ("hole", "int-hole"):
        yield from _holes(log, name)

def _holes(log, anomaly):
    kind = "wide-" if log.is_wide else ""
    yield Found(anomaly=kind + anomaly, key=log.key)
"""


def emitted(folder: Path, constructors: tuple[str, ...], keyword: str) -> set[str]:
    """Return what the modules of a folder give to the constructors."""
    sources = sorted(folder.rglob("*.py"))
    return Emitted([ast.parse(path.read_text()) for path in sources]).of(constructors, keyword)


def test_names_are_followed_through_a_module() -> None:
    """The ids of a kernel are found although no constructor has them as literals."""
    found = Emitted([ast.parse(HOLES)]).of(("Found",), "anomaly")
    assert found == {"hole", "int-hole", "wide-hole", "wide-int-hole"}


def test_every_id_of_a_kernel_is_in_the_table() -> None:
    """The kernels and the checks of nodes report all anomalies of the table, and no others."""
    of_kernels = emitted(CHECKERS / "kernels", ("Found", "replace"), "anomaly")
    assert of_kernels | {findings.CRASH, findings.UNRESPONSIVE} == set(anomalies.OF_HISTORIES)


def test_every_name_of_a_violation_is_in_the_table() -> None:
    """The folds and the witnesses report all invariants of the table, and no others."""
    of_folds = emitted(CHECKERS / "invariants", ("Violation",), "invariant")
    of_witnesses = emitted(WITNESSES, ("Violation",), "invariant")
    assert of_folds | of_witnesses == VIOLATIONS
    assert not of_folds & of_witnesses


def test_every_checker_of_the_table_is_in_verdicts() -> None:
    """Each anomaly belongs to a checker whose material is counted."""
    everything = (*anomalies.OF_HISTORIES, *anomalies.OF_STATE)
    assert {anomalies.of(id_).checker for id_ in everything} <= set(material.MATERIAL)


def test_the_rule_in_words_says_never_where_the_rule_does() -> None:
    """An anomaly is described as never legal exactly where its rule permits nothing."""
    said = {a.id for a in anomalies.OF_HISTORIES.values() if a.legal_when.startswith("never")}
    assert said == {a.id for a in anomalies.OF_HISTORIES.values() if a.allows is never}


def test_a_finding_of_an_unknown_anomaly_is_refused(histories: Any) -> None:
    """A kernel's finding without an entry is an error, and not a finding that counts nowhere."""
    tables = histories.tables("s:x=a@0 p:x=a@0")
    with pytest.raises(UnknownAnomaly, match="'hole' is not an anomaly"):
        findings.findings([Found(anomaly="hole", key="x")], overview.of(tables), Contract())
    with pytest.raises(UnknownAnomaly, match="'hole' is not an anomaly"):
        verdict.conclude(
            overview.of(tables), {}, [Finding(anomaly="hole", key="x")], run=None, plan={}
        )


def test_a_violation_of_an_unknown_invariant_is_refused(histories: Any) -> None:
    """An ``invariants.jsonl`` of another version may name an invariant that there is no longer."""
    tables = histories.tables("s:x=a@0 p:x=a@0")
    gone = Violation(invariant="gone", time_ns=1, why="so it was")
    with pytest.raises(BadRecord, match="'gone' is not an invariant"):
        findings.findings([], overview.of(tables), Contract(), [gone])


def test_an_invariant_has_its_summary() -> None:
    """The report describes a violated invariant by the sentence of its entry."""
    (first, *_) = INVARIANTS
    assert anomalies.summary(anomalies.INVARIANT + first.id) == first.summary
    assert anomalies.summary("of-another-version") == ""


@pytest.mark.parametrize(("counted_by", "counts"), [("value", 2), ("offset", 3), ("witnesses", 4)])
def test_findings_are_counted_by_what_the_table_says(
    counted_by: Any, counts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Findings of one value, one offset or the same witnesses count once."""
    entry = dataclasses.replace(anomalies.of("duplicate"), counted_by=counted_by)
    monkeypatch.setattr(anomalies, "_ALL", {"duplicate": entry})
    found = [
        Finding(anomaly="duplicate", key="x", value=value, offset=offset, ops=(op,))
        for value, offset, op in ((1, 1, 1), (1, 2, 2), (1, 2, 3), (2, 3, 4), (2, 3, 4))
    ]
    assert findings.counts(found, legal=False) == {"duplicate": counts}
