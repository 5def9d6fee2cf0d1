"""The rules for topic names."""

import re
from collections.abc import Iterable

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})
"""Kafka's internal topics."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_NAME_CHARS_MAX = 249
"""With a partition's number and Kafka's suffixes, the directory name has up to 255 characters."""


def name_error(name: str) -> str | None:
    """Return why a topic cannot have this name; None if it can."""
    if not name:
        return "a topic's name must not be empty"
    if name in (".", ".."):
        return f"a topic cannot be named {name!r}"
    if len(name) > _NAME_CHARS_MAX:
        return f"a topic's name can have at most {_NAME_CHARS_MAX} characters"
    if not _LEGAL.fullmatch(name):
        return "a topic's name can contain only letters, digits, '.', '_' and '-'"
    return None


def collision(name: str, existing: Iterable[str]) -> str | None:
    """Return an existing topic whose name is the same in metrics, which map '.' to '_'."""
    folded = name.replace(".", "_")
    for other in sorted(existing):
        if other != name and other.replace(".", "_") == folded:
            return other
    return None
