"""Texts are in plain English: no construction that a reader has to solve.

A subject without a name (`whoever asks`), a verb that means something else (`told` for "returned")
and a metaphor (`lies` for "is") must not occur in docstrings, comments, messages and pages.
"""

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_docs import pages

pytestmark = pytest.mark.xdist_group("words")  # all modules are read once

BANNED = re.compile(
    r"\b(told|tells|whoever|whom|nobody|somebody|anew|lies|lay|beside|in turn|nothing of"
    r"|ha(?:s|ve) yet to|what there is|(?:is|are) to be|lets? go|mend(?:s|ed)?|stir(?:s|red)?"
    r"|poke[sd]?)\b",
    re.IGNORECASE,
)
_PERHAPS = re.compile(BANNED.pattern.replace(" ", r"\W+"), re.IGNORECASE)
"""Matches every source that can have a banned text, also one that is written in two literals."""
ROOMS = (
    "bench", "broker_impl", "checkers", "examples", "harness", "model", "nemesis", "setup", "tests",
    "workloads",
)  # fmt: skip
_COMMENT = re.compile(r"(?:^|\s)# .*$", re.MULTILINE)
_NAME = re.compile(r"`+[^`]*`+|\([\w./-]+\.md\)")
"""Names of the code and links, which stay as they are."""
_WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Texts(NamedTuple):
    """The texts of the modules that have a banned word, by kind, each with its module."""

    docstrings: list[str]
    comments: list[str]
    messages: list[str]
    incomplete: list[str]
    """First lines of modules' docstrings that are no sentence."""


@functools.cache
def _texts(repository: Path) -> Texts:
    """Search every module once."""
    found = Texts([], [], [], [])
    for path in (path for room in ROOMS for path in sorted((repository / room).rglob("*.py"))):
        place, source = path.relative_to(repository), path.read_text()
        tree = ast.parse(source)
        first = (ast.get_docstring(tree) or ".").splitlines()[0]
        if not first.endswith((".", ":")):
            found.incomplete.append(f"{place}: {first}")
        if not _PERHAPS.search(source):
            continue
        docstrings = {id(each): str(each.value) for each in _docstrings(tree)}
        found.docstrings.extend(_banned(place, docstrings.values()))
        found.comments.extend(_banned(place, _COMMENT.findall(source)))
        if place.parts[0] != "tests":
            literals = (
                str(node.value)
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and id(node) not in docstrings
            )
            found.messages.extend(_banned(place, (text for text in literals if " " in text)))
    return found


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the strings that stand alone in modules, classes and functions."""
    for node in ast.walk(tree):
        for each in node.body if isinstance(node, _WITH_DOCSTRINGS) else []:
            value = each.value if isinstance(each, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def _banned(place: Path, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if BANNED.search(_NAME.sub("", text)):
            yield f"{place}: {' '.join(text.split())[:90]}"


@pytest.mark.parametrize("kind", ["docstrings", "comments", "messages"])
def test_no_text_has_a_banned_word(kind: str, repository: Path) -> None:
    """No docstring, comment or message has a banned word."""
    found = getattr(_texts(repository), kind)
    assert not found, "\n".join(found)


def test_pages_have_no_banned_word(repository: Path) -> None:
    """The pages for readers are in plain English; findings and decisions keep their titles."""
    read = [page for page in pages(repository) if not {"findings", "adr"} & set(page.parts)]
    found = [
        text
        for page in read
        for text in _banned(page.relative_to(repository), page.read_text().splitlines())
    ]
    assert not found, "\n".join(found)


def test_a_module_begins_with_a_sentence(repository: Path) -> None:
    """The first line of a module's docstring stands alone."""
    assert _texts(repository).incomplete == []
