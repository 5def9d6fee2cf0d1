"""Bytes that no correct peer sends are decoded or raise `WireError`, never another exception."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from broker_impl.errors import WireError
from broker_impl.wire.messages import MessageModule, request_module, response_module
from broker_impl.wire.messages.apis import APIS

MODULES = [module(key) for key in APIS for module in (request_module, response_module)]
TRIES = 25


def name_of(module: MessageModule) -> str:
    return module.decode.__module__.rpartition(".")[2]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_what_is_written_is_read(
    module: MessageModule, random_messages: Callable[[MessageModule, int, int], Any]
) -> None:
    """In every version, a decoded message is encoded to the same bytes again."""
    for version in module.VERSIONS:
        source = random_messages(module, version, version)
        for _ in range(3):
            _, written = source.draw()
            again = module.decode(memoryview(written), version)
            assert b"".join(module.encode(again, version)) == written


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_damaged_bytes(
    module: MessageModule, random_messages: Callable[[MessageModule, int, int], Any]
) -> None:
    """A message that is cut short or damaged raises WireError or is another message."""
    rng = random.Random(name_of(module))
    for version in module.VERSIONS:
        _, written = random_messages(module, version, version).draw()
        for _ in range(TRIES):
            damaged = bytearray(written[: rng.randint(0, len(written))])
            for _ in range(rng.choice([0, 1, 3])):
                if damaged:
                    damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            try:
                module.decode(memoryview(damaged), version)
            except WireError:
                continue


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_no_prefix_is_a_message(
    module: MessageModule, random_messages: Callable[[MessageModule, int, int], Any]
) -> None:
    """Every proper prefix of a message is refused."""
    for version in (module.VERSIONS.start, module.VERSIONS[-1]):
        _, written = random_messages(module, version, version).draw()
        for stop in range(0, len(written), 1 + len(written) // 100):
            with pytest.raises(WireError):
                module.decode(memoryview(written)[:stop], version)
