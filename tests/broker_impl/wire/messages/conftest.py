"""Random messages of every kind and version, from the generated classes' annotations alone."""

import random
import re
import types
import typing
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from broker_impl.errors import WireError
from broker_impl.wire.messages import MessageModule

TEXTS = ["", "t", "topic-1", "größe", "x" * 130]
# these fit every width (the oracles see a wrong one) and are error codes
NUMBERS = [0, 1, -1, 5, 100]


class RandomMessages:
    """Fills messages of one version, and learns from WireErrors what this version cannot encode."""

    def __init__(self, module: MessageModule, version: int, rng: random.Random) -> None:
        self._module = module
        self._version = version
        self._rng = rng
        self._left_out: set[str] = set()
        self._never_null: set[str] = set()
        self._classes: dict[type, dict[str, Any]] = {}
        self.root = typing.get_type_hints(module.decode)["return"]

    def draw(self) -> tuple[Any, bytes]:
        """A random message and its encoding."""
        while True:
            message = self._struct(self.root)
            try:
                return message, b"".join(self._module.encode(message, self._version))
            except WireError as error:
                self._learn(str(error))

    def _learn(self, refusal: str) -> None:
        if found := re.search(r"this version has no field (\w+),", refusal):
            self._left_out.add(found[1])
        elif found := re.search(r": (\w+) is null,", refusal):
            self._never_null.add(found[1])
        else:
            raise AssertionError(refusal)

    def _struct(self, cls: type) -> Any:
        if cls not in self._classes:
            self._classes[cls] = typing.get_type_hints(cls)
        values = {
            name: self._value(name, hint)
            for name, hint in self._classes[cls].items()
            if name not in self._left_out and self._rng.random() > 0.1
        }
        if not self._never_null.isdisjoint(self._classes[cls]):
            for name in sorted(self._never_null & self._classes[cls].keys()):
                values.setdefault(name, self._value(name, self._classes[cls][name]))
        return cls(**values)

    def _value(self, name: str, hint: Any) -> Any:
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        is_nullable = type(None) in options
        if is_nullable and name not in self._never_null and self._rng.random() < 0.2:
            return None
        kind = options[0]
        if typing.get_origin(kind) is list:
            (item,) = typing.get_args(kind)
            return [self._value(name, item) for _ in range(self._rng.choice([0, 1, 1, 2, 3]))]
        if kind is bool:
            return self._rng.random() < 0.5
        if kind is int:
            return self._rng.choice(NUMBERS)
        if kind is float:
            return self._rng.choice([0.0, 1.5, -2.25])
        if kind is str:
            return self._rng.choice(TEXTS)
        if kind is UUID:
            return UUID(int=self._rng.getrandbits(128))
        if kind is bytes:  # any buffer; a view compares equal to what is decoded
            return memoryview(self._rng.randbytes(self._rng.choice([0, 1, 200])))
        return self._struct(kind)


@pytest.fixture
def random_messages() -> Callable[[MessageModule, int, int], RandomMessages]:
    """A function that makes a source of random messages of a module and version from a seed."""

    def source(module: MessageModule, version: int, seed: int) -> RandomMessages:
        return RandomMessages(module, version, random.Random(seed))

    return source
