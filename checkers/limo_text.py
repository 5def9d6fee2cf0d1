"""Reads LiMo's texts: calls and returns of the threads that use one stack or one queue.

A line ``# @object atomic-stack`` or ``# @object atomic-queue`` names the object; other lines that
begin with ``#`` are comments. Each event is a line, such as ``[1] call push(3)``, ``[1] return``,
``[2] call pop`` and ``[2] return 3``. A removal that returns ``empty``, or no value, found nothing.

Source: https://github.com/grahnen/LiMo (README, Histories), the tool of Abdulla et al., "Efficient
Linearizability Monitoring", PLDI 2025.
"""

import re
from collections.abc import Mapping

from checkers.linearizability.models import EMPTY
from model.history import BadHistory
from model.op import Op

OBJECTS: Mapping[str, Mapping[str, str]] = {
    "atomic-stack": {"push": "push", "add": "push", "pop": "pop", "remove": "pop"},
    "atomic-queue": {
        "enq": "enqueue",
        "enqueue": "enqueue",
        "add": "enqueue",
        "deq": "dequeue",
        "dequeue": "dequeue",
        "remove": "dequeue",
    },
}
"""The names of the methods of each object, and those of the operations that they are."""
_TAKES = ("pop", "dequeue")

_OBJECT = re.compile(r"#\s*@object\s+(\S+)")
_CALL = re.compile(r"\[(\d+)\]\s+call\s+(\w+)\s*(?:\(\s*([\w-]*)\s*\)|([\w-]+))?")
_RETURN = re.compile(r"\[(\d+)\]\s+return(?:\s+([\w-]+))?")


def is_limo(text: str) -> bool:
    """Return whether a text begins with comments, and names an object in one of them."""
    for line in map(str.strip, text.split("\n")):
        if _OBJECT.match(line):
            return True
        if line and not line.startswith("#"):
            return False
    return False


def read(text: str, source: object) -> list[Op]:
    """Return the events of a text. Raises :class:`~model.history.BadHistory`."""
    found: list[Op] = []
    methods: Mapping[str, str] = {}
    running: dict[int, str] = {}
    for number, line in enumerate(map(str.strip, text.split("\n")), 1):
        place = f"{source}, line {number}"
        if line.startswith("#"):
            if match := _OBJECT.fullmatch(line):
                methods = _methods(match[1], place)
        elif match := _CALL.fullmatch(line):
            thread = int(match[1])
            if thread in running:
                raise BadHistory(f"{place}: thread {thread} calls before its last call returned")
            running[thread] = f = _operation(methods, match[2], place)
            value = _value(match[3] or match[4])
            if (f in _TAKES) != (value is None):
                needs = "takes no value" if f in _TAKES else "needs a value"
                raise BadHistory(f"{place}: {match[2]} {needs}")
            found.append(_event(len(found), thread, f, value, is_call=True))
        elif match := _RETURN.fullmatch(line):
            thread = int(match[1])
            if thread not in running:
                raise BadHistory(f"{place}: thread {thread} returns without a call")
            f = running.pop(thread)
            value = (_value(match[2]) if match[2] else EMPTY) if f in _TAKES else None
            found.append(_event(len(found), thread, f, value, is_call=False))
        elif line:
            what = "neither '[thread] call method(value)' nor '[thread] return value'"
            raise BadHistory(f"{place}: {line[:80]!r} is {what}")
    return found


def _methods(name: str, place: str) -> Mapping[str, str]:
    if name not in OBJECTS:
        raise BadHistory(f"{place}: the object {name} is not one of {', '.join(OBJECTS)}")
    return OBJECTS[name]


def _operation(methods: Mapping[str, str], method: str, place: str) -> str:
    if method not in methods:
        raise BadHistory(f"{place}: the method {method} is not one of {', '.join(methods)}")
    return methods[method]


def _value(text: str | None) -> int | str | None:
    if not text:
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _event(index: int, thread: int, f: str, value: int | str | None, *, is_call: bool) -> Op:
    kind = "invoke" if is_call else "ok"
    return Op(index=index, time_ns=index, process=thread, type=kind, f=f, value=value)  # type: ignore[arg-type]
