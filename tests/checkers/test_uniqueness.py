"""Values that several writes may have written are not judged, and the verdict says so."""

from typing import Any

import pytest

from checkers import inline, overview
from checkers.kernels import history_kernels
from checkers.verdict import conclude


def found(histories: Any, text: str) -> tuple[list[str], tuple[overview.Repeated, ...]]:
    """Return the anomalies, and the values that were not judged."""
    tables = histories.tables(text)
    reports = inline.judge(tables, lambda done: None)
    judged = history_kernels.judge(tables, [f for report in reports.values() for f in report.found])
    return [f.anomaly for f in judged.found], overview.repeated(tables)


@pytest.mark.parametrize(
    ("text", "anomalies", "repeated"),
    [
        ("s:x=a@0 p:x=a@0", [], False),
        ("s:x=a@0 s1:x=a@1 p:x=a@0,x=a@1", [], True),
        ("s?:x=a s1:x=a@1 p:x=a@0,x=a@1", [], True),
        ("s:x=a@0,x=a@1 p:x=a@0,x=a@1", [], True),  # one operation, twice
        ("s!:x=a s1:x=a@0 p:x=a@0", [], False),  # the first write certainly failed
        ("s!:x=a s1:x=a@0 p:x=a@0,x=a@1", ["duplicate"], False),
        ("s!:x=a s1!:x=a p:x=a@0", ["G1a"], False),  # both writes failed
        ("s:x=a@0 s1:y=a@0 p:x=a@0|y=a@0", [], False),  # another partition
        ("s:x=a@0 s1:x=a@1,x=b@2 s2:x=c@3 p:x=a@0,x=a@1,x=c@3", ["lost-write"], True),
    ],
)
def test_values_that_were_sent_twice(
    histories: Any, text: str, anomalies: list[str], repeated: bool
) -> None:
    """A value that may have been written twice is not judged, and all others are."""
    names, values = found(histories, text)
    assert ([name for name in names if name != "int-send-skip"], bool(values)) == (
        anomalies,
        repeated,
    )


def test_the_reason_names_the_first_value_and_counts_the_others(histories: Any) -> None:
    """One sentence, with the operations that sent it."""
    tables = histories.tables("s:x=a@0,x=b@1 s1:x=a@2,x=b@3 p:x=a@0")
    reports = inline.judge(tables, lambda done: None)
    verdict = conclude(overview.of(tables), reports, [], run=None, plan={})
    (reason,) = (text for text in verdict.unknown_because if "sent" in text)
    assert reason.startswith(
        "value 1 of x was sent 2 times (by events 1, 3), and 1 more values like it"
    )
