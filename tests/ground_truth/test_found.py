"""Histories that were once judged wrongly, with their correct judgement."""

from pathlib import Path

import pytest

from harness.app import check
from model.history import BadHistory

pytestmark = pytest.mark.ground_truth

FOUND = Path("..", "shared", "data", "found")
REFUSED, UNKNOWN = "refused", "unknown"

EXPECTED = {
    "01-read-before-sent-VALID.jsonl": {"G1c-realtime": 1},
    "01b-future-read-blames-innocent-transaction.jsonl": {"G1c-realtime": 1},
    "02-negative-offset-makes-duplicate-legal.jsonl": REFUSED,
    "03-value-sent-twice-called-sent-once.jsonl": UNKNOWN,
    "03b-retry-after-info.jsonl": UNKNOWN,
    "04-catchup-below-high-watermark-false-lost.jsonl": REFUSED,
    "05-second-completion-counted-as-operation-INVALID.jsonl": REFUSED,
    "06-traceback-crash-status-null.jsonl": REFUSED,
    "06-traceback-crash-weird.jsonl": REFUSED,
    "06-traceback-deep-object.jsonl": REFUSED,
    "06-traceback-edn-deep-value.edn": REFUSED,
    "06-traceback-init-weird.jsonl": REFUSED,
    "06-traceback-process-2^31.jsonl": REFUSED,
    "06-traceback-subscribe-options-list.jsonl": REFUSED,
    "07-torn-last-map-refused.edn": UNKNOWN,
    "07b-torn-vector-refused.edn": UNKNOWN,
    "08-unknown-operations-ignored-VALID.jsonl": {},
    "09-completions-only-VALID.jsonl": REFUSED,
    "10-unsorted-and-negative-times-VALID.jsonl": REFUSED,
    "12-null-offset-phantom-VALID.jsonl": {"phantom": 1},
    "12b-null-offset-aborted-read-VALID.jsonl": {"G1a": 1},
    "13-first-join-skips-records-VALID.jsonl": {"resume-gap": 1},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_history_that_was_judged_wrongly(pytestconfig: pytest.Config, name: str) -> None:
    """Each history is rejected in one line, left undecided, or has exactly its known anomalies."""
    path = pytestconfig.rootpath / FOUND / name
    if EXPECTED[name] == REFUSED:
        with pytest.raises(BadHistory) as refused:
            check.examine(path, inline=True)
        assert "\n" not in str(refused.value)
        return
    verdict = check.examine(path, inline=True).verdict
    assert EXPECTED[name] == (UNKNOWN if verdict.valid == UNKNOWN else verdict.anomalies)
