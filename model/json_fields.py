"""JSON objects that name no field twice: decoders take the last one of such fields silently."""

import json
from typing import Any


class Doubled(ValueError):
    """An object has two fields of one name; the message names the field."""


def loads(text: bytes | str) -> Any:
    """The value of a JSON text; raises :class:`Doubled`, and what :func:`json.loads` raises."""
    return json.loads(text, object_pairs_hook=_named_once)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Doubled(f"an object has two fields that are called {json.dumps(twice)[:100]}")
    return found
