"""Defines a hostile input, and the rules that every answer to it must follow."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

VALID, INVALID, UNKNOWN, REFUSED, FAILED = 0, 1, 2, 64, 70
REFUSES = frozenset({REFUSED})
READS = frozenset({VALID, UNKNOWN})
DOUBTS = frozenset({UNKNOWN, INVALID})
ANY = frozenset({VALID, INVALID, UNKNOWN, REFUSED})
LINE_MAX = 1100
"""The longest permitted line of a refusal or a verdict, in characters."""


@dataclass(frozen=True)
class Case:
    """A command line of ``faultline`` in a folder of its own, with the files that it names."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda folder: None
    may: frozenset[int] = REFUSES
    """The permitted exit statuses."""
    mentions: str = ""
    """Text that a verdict must contain unless the input is refused: nothing is silently ignored."""
    history: str | None = None
    """The history that is judged; findings must name events in it."""
    shows_help: bool = False
    """True if the answer is the help of a command, with many lines."""
    shell: str | None = None
    """A shell command in which ``{}`` stands for the command line; it runs in its own process."""


@dataclass(frozen=True)
class Answer:
    """The answer of the command line."""

    status: int | None
    """``None`` if it did not end in time."""
    out: str
    err: str
    witnesses_exist: bool = True
    """True if every finding names events that exist in the history."""


def file(name: str, content: bytes | str) -> Callable[[Path], None]:
    """Return a function that creates one file."""

    def prepare(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return prepare


def both(*prepare: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return a function that prepares one thing after the other."""

    def together(folder: Path) -> None:
        for each in prepare:
            each(folder)

    return together


def complaints(case: Case, answer: Answer) -> list[str]:
    """Return what is wrong with an answer, one sentence each."""
    return list(_complaints(case, answer))


def _complaints(case: Case, answer: Answer) -> Iterable[str]:
    if answer.status is None:
        yield "the program did not end in time"
        return
    both = answer.out + answer.err
    if answer.status not in case.may:
        yield f"the exit status is {answer.status}, not one of {sorted(case.may)}"
    if "Traceback" in both:
        yield "the output has a traceback"
    if found := re.search(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]", both):
        yield f"the output has the control character {found[0]!r}"
    if not case.shows_help and any(len(line) > LINE_MAX for line in both.splitlines()):
        yield f"the output has a line of more than {LINE_MAX:,} characters"
    if answer.status == REFUSED and not case.shows_help:
        yield from _of_refusal(answer)
    elif answer.status == INVALID:
        if not re.match(r"INVALID  [\w:-]+ [\d,]+ · ", answer.out):
            yield "the exit status is 1, but no anomaly is named"
        if not answer.witnesses_exist:
            yield "a finding names events that the history does not have"
    elif answer.status != FAILED and case.mentions not in both:
        yield f"the output does not mention {case.mentions!r}"


def _of_refusal(answer: Answer) -> Iterable[str]:
    if answer.out:
        yield "a refusal also wrote to standard output"
    stderr_lines = answer.err.splitlines()
    lines = [
        line for line in stderr_lines if line.startswith("faultline") or not line.endswith(" …")
    ]
    if len(lines) != 1 or not lines[0].startswith("faultline: "):
        yield "the refusal is not one line on standard error"
    elif len(lines[0].split()) < 3:
        yield "the refusal does not say what is wrong"
