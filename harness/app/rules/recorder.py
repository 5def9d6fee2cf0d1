"""Puts probes into the rules of this process, and records which of them a run reaches.

The code of each function is replaced, not the function: all references to it run the probes, and
a planted bug replaces it as before. Probes neither draw random numbers nor read a clock, so a run
is the same with them.
"""

import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from harness.app.rules import probes
from harness.app.rules.probes import Function


class Rule(NamedTuple):
    """A function with probes."""

    module: str
    function: Function

    @property
    def name(self) -> str:
        """Its name, as mutants name the rule that they replace."""
        return f"{self.module}:{self.function.name}"


class Phase(NamedTuple):
    """A part of a run."""

    name: str
    began_s: float
    hits: bytearray
    """One byte for each probe: 1 if it was reached in this phase."""


class Recorder:
    """Records the probes that are reached in this process, by the phases of a run."""

    def __init__(self, rules: Sequence[Rule], size: int, places: Sequence[dict[str, Any]]) -> None:
        """``size`` is the number of probes; ``places`` are the names of the modules with probes."""
        self.rules = rules
        self.size = size
        self.phases: list[Phase] = []
        """The phases so far, in order; the probes record into the last one."""
        self._places = places
        self.begin()

    def begin(self) -> None:
        """Forget what was reached so far, and begin a phase without a name."""
        self.phases.clear()
        self.enter("", 0.0)

    def enter(self, name: str, now_s: float) -> None:
        """Begin the next phase."""
        hits = bytearray(self.size)
        self.phases.append(Phase(name, now_s, hits))
        for names in self._places:
            _set_probes(names, hits)

    def reached(self) -> bytes:
        """Return one byte for each probe: 1 if it was reached since the beginning."""
        return bytes(map(max, zip(*(phase.hits for phase in self.phases), strict=True)))


def install(modules: Iterable[str]) -> Recorder:
    """Put probes into all functions of these modules, which are imported first.

    They stay until the process ends, or until :func:`restore` removes them.
    """
    rules: list[Rule] = []
    replaced: list[tuple[FunctionType, CodeType]] = []
    loaded = [importlib.import_module(name) for name in modules]
    size = 0
    for module in loaded:
        probed = probes.add(inspect.getsource(module), str(module.__file__), size)
        size += probed.size
        codes = {_place(code): code for code in _codes(probed.code)}
        found = set()
        for function in _functions(module):
            if (code := codes.get(_place(function.__code__))) is not None:
                replaced.append((function, code))
                found.add(function.__qualname__)
        rules += [Rule(module.__name__, each) for each in probed.functions if each.name in found]
    recorder = Recorder(tuple(rules), size, [vars(module) for module in loaded])
    for function, code in replaced:
        _originals.append((function, function.__code__))
        function.__code__ = code
    return recorder


def restore() -> None:
    """Remove all probes from this process."""
    while _originals:
        function, code = _originals.pop()
        function.__code__ = code


_originals: list[tuple[FunctionType, CodeType]] = []


def _set_probes(names: dict[str, Any], hits: bytearray) -> None:
    def reached(number: int) -> None:
        hits[number] = 1

    def decided(number: int, value: Any) -> Any:
        hits[number if value else number + 1] = 1
        return value

    names[probes.REACHED], names[probes.DECIDED] = reached, decided


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a module's functions and of its classes' methods."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            if not constant.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
                yield from _codes(constant)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions of a module and the methods of its classes, also decorated ones."""
    seen = set[int]()
    waiting = list(vars(module).values())
    while waiting:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if value.__code__.co_filename == module.__file__:
                yield value
            waiting += _within(value)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            waiting += vars(value).values()
        elif isinstance(value, staticmethod | classmethod):
            waiting.append(value.__func__)
        elif isinstance(value, property):
            waiting += [value.fget, value.fset, value.fdel]
        else:
            waiting += _unwrapped(value)


def _within(function: FunctionType) -> list[Any]:
    """Return what a decorator has wrapped."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    return [*_unwrapped(function), *(each for each in cells if isinstance(each, FunctionType))]


def _unwrapped(value: Any) -> list[Any]:
    own: Mapping[str, Any] = getattr(value, "__dict__", {})
    return [own[name] for name in ("__wrapped__", "func") if name in own]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True
