"""Histories of consumer groups, judged by all checkers."""

from pathlib import Path
from typing import Any

import pytest

from checkers import findings, inline, overview
from checkers.expectations import Contract
from checkers.kernels import history_kernels
from checkers.tables import Tables

SENDS = "s:x-0=a@0,x-0=b@1,x-0=c@2 "
SOUND = (
    SENDS + "k9:x-0@0 m1:x m2:x p1:^x-0@0#1|x-0=a@0,x-0=b@1 k1:x-0@2 f:x-0@2 p2: p1:-x-0#1|^#2|"
    " p2:^x-0@2#2|x-0=c@2 k2:x-0@3 f:x-0@3 l1: l2:"
)
"""A partition that is reassigned from one member to another."""


def told(tables: Tables, **settings: str) -> list[str]:
    """Return the anomalies, each with the number of its folded findings; permitted ones in
    brackets."""
    reports = inline.judge(tables, lambda done: None)
    assert not [r for report in reports.values() for r in report.checker_runs if r.crash]
    found = history_kernels.judge(
        tables, [f for report in reports.values() for f in report.found]
    ).found
    return [
        ("({})" if f.legal else "{}").format(f.anomaly + f" +{f.folded}" * bool(f.folded))
        for f in findings.findings(found, overview.of(tables), Contract.of(None, settings))
        if f.anomaly not in ("unseen-unchecked",)
    ]


@pytest.mark.parametrize(
    ("text", "anomalies"),
    [
        (SOUND, []),
        (SOUND.replace("f:x-0@3", "f:x-0"), ["lost-commit"]),
        (SOUND.replace("f:x-0@3", "f:x-0@2"), ["commit-regression"]),
        (
            SOUND.replace("f:x-0@2 ", "f:x-0 ").replace("^x-0@2#2", "^x-0@0#2|x-0=a@0,x-0=b@1"),
            ["lost-commit +1"],
        ),
        (SOUND.replace("^x-0@2#2|", "^x-0@0#2|x-0=a@0,x-0=b@1|"), ["resume-overlap"]),
        (SOUND.replace("^x-0@2#2|x-0=c@2", "^x-0@3#2|") + " p8:x-0=c@2", ["resume-gap"]),
        (
            SOUND.replace("k1:x-0@2 f:x-0@2", "k1:x-0@3 f:x-0@3").replace(
                "^x-0@2#2|x-0=c@2", "^x-0@3#2|"
            )
            + " p8:x-0=c@2",
            ["commit-ahead"],
        ),
        (SOUND.replace("^x-0@2#2", "^x-0@2#1"), ["double-owner"]),
        (SOUND.replace("p1:-x-0#1|^#2|", "p1:") + " m3:x", []),
    ],
)
def test_one_defect_is_told_once(histories: Any, text: str, anomalies: list[str]) -> None:
    """A defect in a reassignment is one finding."""
    assert told(histories.tables(text)) == anomalies


def test_findings_name_their_group(histories: Any) -> None:
    """A finding names its group and partition, and each contradiction counts."""
    tables = histories.tables(SENDS + "k:x-0@2 f:x-0 k1:x-0@3 f:x-0")
    reports = inline.judge(tables, lambda done: None)
    found = findings.findings(reports["x-0"].found, overview.of(tables), Contract())
    assert {(f.group, f.key, f.partition) for f in found if f.group} == {("g", "x-0", 0)}
    assert findings.counts(found, legal=False) == {"lost-commit": 2}


@pytest.mark.spark
def test_both_executors_find_the_same(histories: Any, spark: Any, tmp_path: Path) -> None:
    """Both executors find the same in groups, also of partitions without records."""
    from checkers import spark as spark_

    text = SOUND.replace("f:x-0@3", "f:x-0 k:y-0@5%7 f:y-0@3 f:y-0@5%8 w:x-0@0/3/3").replace(
        "#2", "#1"
    )
    tables = histories.tables(text)
    one, other = (
        {key: report._replace(checker_runs=[]) for key, report in reports.items()}
        for reports in (
            inline.judge(tables, lambda done: None),
            spark_.judge(tables, spark, tmp_path, lambda done: None),
        )
    )
    assert one == other
    assert sorted(f.anomaly for f in one["x-0"].found if f.group) == [
        "double-owner",
        "lost-commit",
    ]
    assert [f.anomaly for f in one["y-0"].found] == ["commit-regression", "commit-mismatch"]
