"""Short texts for histories of transactions.

A line is ``[process] [type] micro-operations``; by default the process is 0 and the type ``ok``.
``x+1`` appends 1 to x, ``x:1`` writes it, and ``x=1,2`` reads a list. ``x=1`` reads a list, or a
register on request. ``x=`` reads the initial version, and ``x=?`` has no result.
"""

import re
from typing import Any, Literal

from model.op import Op

Kind = Literal["invoke", "ok", "fail", "info"]
_KINDS: dict[str, Kind] = {"invoke": "invoke", "ok": "ok", "fail": "fail", "info": "info"}
_MICRO_OP = re.compile(r"(?P<key>\w+)(?P<sign>[+:=]?)(?P<value>.*)")


def _number(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def micro_op(text: str, is_register: bool) -> list[Any]:
    """Return a micro-operation from its text."""
    found = _MICRO_OP.fullmatch(text)
    assert found, f"{text} is no micro-operation"
    key, sign, value = found["key"], found["sign"], found["value"]
    if sign in ("+", ":"):
        return ["append" if sign == "+" else "w", key, _number(value)]
    if value in ("", "?"):
        return ["r", key, None]
    read = [_number(each) for each in value.split(",")]
    return ["r", key, read[0] if is_register else read]


def history(*lines: str, registers: bool = False) -> list[Op]:
    """Return the events of these lines, in their order."""
    found = []
    for index, line in enumerate(lines):
        words = line.split()
        process = int(words.pop(0)) if words and words[0].isdigit() else 0
        kind = _KINDS[words.pop(0)] if words and words[0] in _KINDS else "ok"
        value = [micro_op(word, registers) for word in words]
        found.append(
            Op(index=index, time_ns=index, process=process, type=kind, f="txn", value=value)
        )
    return found


def one_by_one(*lines: str, registers: bool = False) -> list[Op]:
    """Return the events of transactions that are executed one after another: for each line its
    invocation and its completion."""
    events: list[Op] = []
    for line in history(*lines, registers=registers):
        for kind in ("invoke", line.type):
            index = len(events)
            events.append(
                Op(
                    index=index,
                    time_ns=index,
                    process=line.process,
                    type=_KINDS[kind],
                    f="txn",
                    value=line.value,
                )
            )
    return events
