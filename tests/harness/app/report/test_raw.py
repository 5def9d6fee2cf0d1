"""The lines of a history that a page quotes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.app.report import raw
from model.finding import Finding


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ('[["send","a-0",[7,9]]]', "[7,9]"),
        ('[["poll",{"b-0":[[7,9]],"a-0":[[6,1],[7,9]]}]]', "[7,9]"),
        ('[["poll",{"b-0":[[7,1]],"a-0":[[6,1],[7,3]]}]]', "[7,3]"),
        ('[["send","a-0",9]]', "9"),
        ('[["send","a-0",19],["send","a-0",9]]', "9"),
        ('[["poll",{}]]', None),
    ],
)
def test_the_record_is_marked(text: str, marked: str | None) -> None:
    """The finding's record is marked in a quoted line, by offset and value, offset, or value."""
    parts = raw.stretches(text, Finding(anomaly="x", key="a-0", offset=7, value=9))
    assert "".join(part.text for part in parts) == text
    assert [part.text for part in parts if part.is_hit] == ([] if marked is None else [marked])


def test_a_long_line_is_quoted_around_the_record() -> None:
    """Of a long poll, the beginning and the text around the record are quoted."""
    records = ",".join(f"[{at},{at + 1}]" for at in range(9000))
    text = f'{{"index":4,"value":[["poll",{{"a-0":[{records}]}}]]}}'
    parts = raw.stretches(text, Finding(anomaly="x", key="a-0", offset=5000))
    assert parts[0].text.startswith('{"index":4')
    assert [part.text for part in parts if part.is_hit] == ["[5000,5001]"]
    assert sum(len(part.text) for part in parts) == raw.CHARACTERS
    assert [part.begins for part in parts] == [False, True, False, False]


@given(st.text(max_size=40).map(lambda text: text * 90), st.integers(0, 9), st.text(max_size=3))
def test_any_line_is_quoted_within_bounds(text: str, offset: int, key: str) -> None:
    """Whatever a line holds, the quoted stretches are parts of it and not too long."""
    parts = raw.stretches(text, Finding(anomaly="x", key=key, offset=offset, value=offset))
    assert sum(len(part.text) for part in parts) <= raw.CHARACTERS
    assert all(part.text in text for part in parts)
