"""What a topic may be called."""

import re
from collections.abc import Iterable

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that brokers keep for themselves."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_NAME_CHARS_MAX = 249
"""With a partition's number and Kafka's suffixes, a directory name of 255 characters."""


def name_error(name: str) -> str | None:
    """Why no topic can have this name; None when it may."""
    if not name:
        return "a topic's name is not empty"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > _NAME_CHARS_MAX:
        return f"a topic's name has at most {_NAME_CHARS_MAX} characters"
    if not _LEGAL.fullmatch(name):
        return "a topic's name consists of letters, digits, '.', '_' and '-'"
    return None


def collision(name: str, existing: Iterable[str]) -> str | None:
    """A topic whose name differs only in '.' and '_', which metrics cannot tell apart."""
    folded = name.replace(".", "_")
    for other in sorted(existing):
        if other != name and other.replace(".", "_") == folded:
            return other
    return None
