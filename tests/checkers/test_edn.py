import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import edn

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab:c-", max_size=3) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("  ; nothing\n", []),
        ("nil true false", [None, True, False]),
        ("1 -2 +3 4N 0.5 -1e3 2.5M", [1, -2, 3, 4, 0.5, -1000.0, 2.5]),
        (":type :a/b sym -  1/2", ["type", "a/b", "sym", "-", "1/2"]),
        ("012 -07 1_000 \uff11 0 -0 1e3M", ["012", "-07", "1_000", "\uff11", 0, 0, 1000.0]),
        (r'"a\"b\\" "\n\u0041" ""', ['a"b\\', "\nA", ""]),
        (r"\a \newline \u0041 [\] \,]", ["a", "\n", "A", ["]", ","]]),
        ("[1 [2 3], ()]", [[1, [2, 3], []]]),
        ("{:a 1, :b {2 [3]}}", [{"a": 1, "b": {2: [3]}}]),
        ("#{1} {[1 2] 3}", [[1], {"[1, 2]": 3}]),
        ("#jepsen.history.Op{:index 0}", [{"index": 0}]),
        ('#inst "2026-11-22"', ["2026-11-22"]),
        ("[1 #_2 #_ #_ 3 4 5] #_[6] 7", [[1, 5], 7]),
        ("[1 ;two\n 3]", [[1, 3]]),
        (
            "{:a nil, :d-nil {1 [[2 3] [4 -5]]}}\n{}",
            [{"a": None, "d-nil": {1: [[2, 3], [4, -5]]}}, {}],
        ),
    ],
)
def test_forms(text: str, values: list[Any]) -> None:
    """Each form that Clojure prints becomes a plain value."""
    assert [value for _, value in edn.forms(text)] == values


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("1\n]", "a ] has no opening bracket", 2),
        ("[1\n)", "a ) has no opening bracket", 2),
        ("{:a}", "a map has a key without a value", 1),
        ("{:a 1}\n{:a 1 :b}", "a map has a key without a value", 2),
        ("1 #_", "the text ends inside", 1),
        ('1\n\n"a', "the text ends inside a form", 3),
        ("1 : 2", "is not EDN", 1),
        (r'1 "\ud800"', "half of a surrogate pair", 1),
        (r"\udfff", "half of a surrogate pair", 1),
    ],
)
def test_what_is_no_edn(text: str, message: str, line: int) -> None:
    """A text that is not EDN is rejected, with the line and the reason."""
    with pytest.raises(edn.BadEdn, match=message.replace("]", r"\]").replace(")", r"\)")) as told:
        list(edn.forms(text))
    assert told.value.line == line


def test_a_text_may_end_too_early() -> None:
    """A text that ends within a form still yields the forms before it."""
    forms = edn.forms("{:a 1}\n{:a [")
    assert next(forms)[1] == {"a": 1}
    with pytest.raises(edn.Unfinished) as told:
        next(forms)
    assert told.value.line == 2


def printed(value: Any) -> str:
    """Print a value as Clojure does; the values are those of JSON."""
    match value:
        case list():
            return f"[{' '.join(map(printed, value))}]"
        case dict():
            return "{" + ", ".join(f"{printed(k)} {printed(v)}" for k, v in value.items()) + "}"
        case None:
            return "nil"
        case _:
            return json.dumps(value, ensure_ascii=False)


@given(st.lists(VALUES, max_size=4))
def test_what_was_printed_is_read(values: list[Any]) -> None:
    """A printed value is read back unchanged."""
    text = "\n".join(map(printed, values))
    assert [value for _, value in edn.forms(text)] == values
