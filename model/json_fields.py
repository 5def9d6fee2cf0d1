"""The fields of JSON objects, of which decoders silently take the last of those with one name."""

import json
from typing import Any


class Doubled(ValueError):
    """An object has two fields of one name; the message names the field."""


def loads(text: bytes | str) -> Any:
    """The value of a JSON text, with numbers as text, since Python does not read all of them.
    Raises :class:`Doubled`, and what :func:`json.loads` raises."""
    return json.loads(text, object_pairs_hook=_named_once, parse_int=str, parse_float=str)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Doubled(f"an object has two fields that are called {json.dumps(twice)[:100]}")
    return found
