"""A client whose topics, groups and transactional ids have a prefix on the brokers.

Plans and histories have the names without it. This is the only place that adds and removes it: the
prefix is put before the names in an operation, and taken from the names in its completion.
"""

from typing import Any

import msgspec

from model.op import Op
from model.roles import Client


class Prefixed:
    """A client of a process, with other names on the brokers."""

    def __init__(self, client: Client, prefix: str) -> None:
        """``prefix``: nothing else in a history may begin with it."""
        self._client = client
        self._prefix = prefix

    @property
    def alive(self) -> bool:
        """Return whether the client may act again."""
        return self._client.alive

    async def open(self) -> None:
        await self._client.open()

    async def invoke(self, op: Op) -> Op:
        """Perform the operation with prefixed names; the result has the names of the history."""
        asked = msgspec.structs.replace(op, value=added(op.value, self._prefix))
        done = await self._client.invoke(asked)
        return msgspec.structs.replace(done, value=removed(done.value, self._prefix))

    async def close(self) -> None:
        await self._client.close()


def added(value: Any, prefix: str) -> Any:
    """Return the value of an operation with the prefix before each name.

    Names are the strings of a plain list (``assign``), and in a micro-operation the second element,
    the strings of a list and the keys of a mapping in third place, as in ``["subscribe", group,
    topics, how]`` and ``["commit", group, {partition: offset}]``.
    """
    if not isinstance(value, list):
        return value
    return [
        _with_prefix(each, prefix) if isinstance(each, list) else _named(each, prefix)
        for each in value
    ]


def _with_prefix(micro_op: list[Any], prefix: str) -> list[Any]:
    kind, *rest = micro_op
    if rest:
        rest[0] = _named(rest[0], prefix)
    if len(rest) > 1:
        rest[1] = _several_named(rest[1], prefix)
    return [kind, *rest]


def _several_named(names: Any, prefix: str) -> Any:
    if isinstance(names, list):
        return [_named(name, prefix) for name in names]
    if isinstance(names, dict):
        return {_named(name, prefix): place for name, place in names.items()}
    return names


def _named(name: Any, prefix: str) -> Any:
    return prefix + name if isinstance(name, str) else name


def removed(value: Any, prefix: str) -> Any:
    """Return a value without the prefix at the beginning of any of its strings."""
    match value:
        case str():
            return value.removeprefix(prefix)
        case list() | tuple():
            return [removed(each, prefix) for each in value]
        case dict():
            return {removed(name, prefix): removed(each, prefix) for name, each in value.items()}
        case _:
            return value
