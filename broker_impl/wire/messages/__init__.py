"""The request and response modules, each imported on first use."""

from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from broker_impl.wire.messages.apis import APIS
from broker_impl.wire.types import Buffer


class MessageModule(Protocol):
    """The interface of a generated module, in addition to its classes."""

    API_KEY: int
    NAME: str
    VERSIONS: range
    FLEXIBLE_FROM: int | None

    def decode(self, buffer: memoryview, version: int) -> Any:
        """Return the message at the start of the buffer; a `WireError` if there is none."""

    def encode(self, message: Any, version: int) -> list[Buffer]:
        """Return the message as buffers; a `WireError` if this version cannot represent it."""


@cache
def request_module(api_key: int) -> MessageModule:
    """Return the module of an API's request. Raises `KeyError` for an unknown API."""
    return cast(MessageModule, import_module(f"{__name__}.{APIS[api_key].stem}_request"))


@cache
def response_module(api_key: int) -> MessageModule:
    """Return the module of an API's response. Raises `KeyError` for an unknown API."""
    return cast(MessageModule, import_module(f"{__name__}.{APIS[api_key].stem}_response"))
