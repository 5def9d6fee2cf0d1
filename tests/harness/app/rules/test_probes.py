"""Probes in the source of a module: which branches there are, and which are recorded."""

import asyncio
import traceback
from typing import Any

import pytest

from harness.app.rules import probes

SOURCE = '''"""A module."""

LIMIT = 3 if True else 4


def joins(end, start, alive):
    """A rule of one expression."""
    return alive and (end >= start or not start)


class Log:
    @staticmethod
    def cut(rows, limit=LIMIT):
        kept = [row for row in rows if row < limit and row != 1]
        for row in rows:
            if row == 9:
                raise ValueError(f"line {row}")
        return kept if kept else None


def kind(value):
    def inner(x):
        return x > 0
    match value:
        case int() if inner(value):
            return "positive"
        case str():
            return "text"
        case _ as other:
            assert_never(other)


def safe(text):
    try:
        return int(text)
    except ValueError:
        return None


async def wait(times):
    while times:
        times -= 1
        await asyncio.sleep(0)
    while True:
        return (found := times) == 0 and found


def abstract(self):
    """Has no code."""
    ...
'''


class _Module:
    """A module with probes, which runs in a namespace of its own."""

    def __init__(self) -> None:
        self.probed = probes.add(SOURCE, "sample.py", 5)
        self.hits = set[int]()
        self.names: dict[str, Any] = {
            "asyncio": asyncio,
            probes.REACHED: self.hits.add,
            probes.DECIDED: self._decided,
        }
        exec(self.probed.code, self.names)

    def _decided(self, number: int, value: Any) -> Any:
        self.hits.add(number if value else number + 1)
        return value

    def reached(self, name: str) -> list[str]:
        """Return the branches of a function that were reached since the last question."""
        [function] = [each for each in self.probed.functions if each.name == name]
        found = [
            f"{branch.text}: {branch.outcome}"
            for number, branch in enumerate(function.branches, function.number + 1)
            if number in self.hits
        ]
        self.hits.clear()
        return found


def test_functions_and_numbers() -> None:
    """Each function has numbers of its own, from the first one on; one without code has none."""
    probed = probes.add(SOURCE, "sample.py", 5)
    names = [function.name for function in probed.functions]
    assert names == ["joins", "Log.cut", "kind", "safe", "wait"]
    number = 5
    for function in probed.functions:
        assert function.number == number
        number += 1 + len(function.branches)
    assert probed.size == number - 5
    assert [function.line for function in probed.functions] == [6, 13, 21, 33, 40]


def test_each_operand_is_a_condition() -> None:
    """A rule that is one expression has the branches of all of its operands."""
    module = _Module()
    assert module.names["joins"](3, 2, True) is True
    assert module.reached("joins") == ["alive: true", "end >= start: true"]
    assert module.names["joins"](1, 2, True) is False
    assert module.reached("joins") == ["alive: true", "end >= start: false", "start: true"]
    assert module.names["joins"](1, 0, []) == []
    assert module.reached("joins") == ["alive: false"]


def test_loops_and_comprehensions() -> None:
    """A body of a loop is entered or not; the conditions of a comprehension are probed."""
    module = _Module()
    assert module.names["Log"].cut([]) is None
    assert module.reached("Log.cut") == ["kept: false"]
    assert module.names["Log"].cut([1, 2]) == [2]
    assert module.reached("Log.cut") == [
        "row < limit: true",
        "row != 1: true",
        "row != 1: false",
        "for row in rows: entered",
        "row == 9: false",
        "kept: true",
    ]


def test_cases_and_handlers() -> None:
    """A case and a handler are entered; a case that never occurs is no branch."""
    module = _Module()
    assert module.names["kind"](1) == "positive"
    assert module.reached("kind") == ["x > 0: true", "inner(value): true", "case int(): entered"]
    assert module.names["kind"]("a") == "text"
    assert module.reached("kind") == ["case str(): entered"]
    with pytest.raises(NameError):
        module.names["kind"](-1)
    assert module.reached("kind") == ["x > 0: false", "inner(value): false"]
    assert module.names["safe"]("1") == 1
    assert module.reached("safe") == []
    assert module.names["safe"]("x") is None
    assert module.reached("safe") == ["except ValueError: entered"]


def test_coroutines_and_constants() -> None:
    """A coroutine is probed like any function; a constant condition is no branch."""
    module = _Module()
    assert asyncio.run(module.names["wait"](1)) == 0
    assert module.reached("wait") == [
        "times: true",
        "times: false",
        "(found := times) == 0: true",
    ]


def test_lines_stay() -> None:
    """An error has the line of the source."""
    module = _Module()
    with pytest.raises(ValueError, match="line 9") as raised:
        module.names["Log"].cut([9])
    entries = traceback.extract_tb(raised.tb)
    assert [entry.lineno for entry in entries if entry.filename == "sample.py"] == [17]
