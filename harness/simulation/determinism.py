"""Pins and patches everything that would make a run depend on more than its seed.

Some of it is decided before an interpreter starts (the seed of string hashes; the address layout,
since until Python 3.12 ``hash(None)`` is an address), so a program that simulates replaces itself
by ``exec_pinned`` before it does anything else. ``install`` replaces the clocks before any library
binds them; they show real time whenever no world runs. ``docs/determinism.md`` explains the reason
for each pin.

This module imports the standard library only, so that it can be imported first.
"""

import ctypes
import gc
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

real_s: Callable[[], float] = time.monotonic
"""The machine's own monotonic clock, in seconds, even while a world runs: for observers."""

_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
_MARK = "FAULTLINE_PINNED"
_NONE_IS_AN_ADDRESS = sys.version_info < (3, 12)


class PinError(Exception):
    """This process cannot be made deterministic; the message is one sentence that says why."""


# Before the interpreter starts.


def is_pinned() -> bool:
    """Return whether this interpreter was started the way ``exec_pinned`` starts one."""
    return (
        not sys.flags.hash_randomization
        and os.environ.get("PYTHONHASHSEED") == "0"
        and "AIOKAFKA_NO_EXTENSIONS" in os.environ
        and (not _NONE_IS_AN_ADDRESS or _layout_is_fixed())
    )


def exec_pinned(argv: Sequence[str] | None = None) -> None:
    """Replace this process by a pinned one; return at once in a process that is pinned already.

    ``argv``: the arguments after the interpreter's name; by default those of this process.

    Raises:
        PinError: the system does not allow it.
    """
    if is_pinned():
        return
    if os.environ.get(_MARK):
        raise PinError("hashes are still random after the interpreter was started again")
    if _NONE_IS_AN_ADDRESS:
        _fix_layout()
    os.environ.update(PYTHONHASHSEED="0", AIOKAFKA_NO_EXTENSIONS="1")
    os.environ[_MARK] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = sys.orig_argv[1:] if argv is None else argv
    os.execv(sys.executable, [sys.executable, *arguments])


def _layout_is_fixed() -> bool:
    return sys.platform == "linux" and bool(_personality(_ASK) & _ADDR_NO_RANDOMIZE)


def _fix_layout() -> None:
    refused = (
        "a simulation on Python 3.11 needs a fixed address layout, and this system does not allow"
        " a process to request it (personality): use Python 3.12 or later"
    )
    if sys.platform != "linux":
        raise PinError(refused)
    before = _personality(_ASK)
    if before == -1 or _personality(before | _ADDR_NO_RANDOMIZE) == -1 or not _layout_is_fixed():
        raise PinError(refused)


def _personality(persona: int) -> int:
    ask = ctypes.CDLL(None).personality
    ask.argtypes = [ctypes.c_ulong]
    return int(ask(persona))


# Before other libraries are imported.


class Clocks(Protocol):
    """The part of a world that the clocks need."""

    def wall_ns(self) -> int: ...
    def monotonic_s(self) -> float: ...


_active: Clocks | None = None
_thread = 0
_is_installed = False


def install() -> None:
    """Replace the clocks of ``time``; later calls do nothing."""
    global _is_installed
    if _is_installed:
        return
    _is_installed = True
    replacements: dict[str, Callable[[Clocks], Any]] = {
        "time": lambda world: world.wall_ns() / 1e9,
        "time_ns": lambda world: world.wall_ns(),
        "monotonic": lambda world: world.monotonic_s(),
        "monotonic_ns": lambda world: int(world.monotonic_s() * 1e9),
        "perf_counter": lambda world: world.monotonic_s(),
        "perf_counter_ns": lambda world: int(world.monotonic_s() * 1e9),
    }
    for name, simulated in replacements.items():
        setattr(time, name, _dispatcher(getattr(time, name), simulated))
    setattr(time, "sleep", _unless_simulated(time.sleep, "time.sleep would block every process"))  # noqa: B010 - a module
    setattr(  # noqa: B010 - a class of the library
        threading.Thread,
        "start",
        _unless_simulated(
            threading.Thread.start, "a thread would run outside of the simulated world"
        ),
    )


def _dispatcher(real: Callable[[], Any], simulated: Callable[[Clocks], Any]) -> Callable[[], Any]:
    def clock() -> Any:
        if _active is None or threading.get_ident() != _thread:
            return real()
        return simulated(_active)

    return clock


def _unless_simulated(real: Callable[..., Any], reason: str) -> Callable[..., Any]:
    def refuse_or_do(*args: Any, **options: Any) -> Any:
        if _active is None or threading.get_ident() != _thread:
            return real(*args, **options)
        raise RuntimeError(f"not possible in a simulation: {reason}")

    return refuse_or_do


# While a world runs.


class Chance:
    """The seeded randomness of libraries, for the module ``random`` and the system's entropy."""

    def __init__(self, seed: str) -> None:
        self.entropy = random.Random(f"{seed} entropy")
        self.module_state = random.Random(f"{seed} module").getstate()


@contextmanager
def active(world: Clocks, chance: Chance) -> Iterator[None]:
    """Use the world's time and its seed's randomness, and disable automatic garbage collection.

    Explicit collections ignore the objects that existed before.
    """
    global _active, _thread
    if _active is not None:
        raise RuntimeError("another simulated world is running")
    install()
    outer_state = random.getstate()
    collects = gc.isenabled()
    gc.disable()
    gc.freeze()
    random.setstate(chance.module_state)
    _thread = threading.get_ident()
    _active = world
    try:
        with _entropy(chance.entropy):
            yield
    finally:
        _active = None
        chance.module_state = random.getstate()
        random.setstate(outer_state)
        gc.unfreeze()
        if collects:
            gc.enable()


@contextmanager
def _entropy(source: random.Random) -> Iterator[None]:
    """Let ``os.urandom``, ``uuid4``, ``secrets``, ``SystemRandom``, ``Random()`` use ``source``."""
    module: Any = random
    real, real_seed = os.urandom, random.Random.seed  # noqa: TID251 - to be put back
    swapped: Any = os

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        real_seed(self, source.getrandbits(128) if a is None else a, version)

    swapped.urandom = module._urandom = source.randbytes
    module.Random.seed = seed
    try:
        yield
    finally:
        swapped.urandom = module._urandom = real
        module.Random.seed = real_seed
