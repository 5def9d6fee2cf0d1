"""Parses JSON and rejects duplicate field names, of which decoders silently keep the last."""

import json
from typing import Any


class Doubled(ValueError):
    """An object has two fields with the same name; the message names the field."""


def loads(text: bytes | str) -> Any:
    """Parse a JSON text, with numbers as strings, because Python does not read all JSON numbers.

    Raises :class:`Doubled`, and whatever :func:`json.loads` raises.
    """
    return json.loads(text, object_pairs_hook=_named_once, parse_int=str, parse_float=str)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Doubled(f"an object has two fields that are called {json.dumps(twice)[:100]}")
    return found
