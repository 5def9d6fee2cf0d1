"""One module per request and response, imported when it is first asked for."""

from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from broker_impl.wire.messages.apis import APIS
from broker_impl.wire.types import Buffer


class MessageModule(Protocol):
    """What each of the generated modules offers, beside its classes."""

    API_KEY: int
    NAME: str
    VERSIONS: range
    FLEXIBLE_FROM: int | None

    def decode(self, buffer: memoryview, version: int) -> Any:
        """The message that the buffer begins with; a `WireError` if none does."""

    def encode(self, message: Any, version: int) -> list[Buffer]:
        """The message as buffers; a `WireError` if this version cannot say it."""


@cache
def request_module(api_key: int) -> MessageModule:
    """The module of an API's request. Raises `KeyError` for an API that we do not know."""
    return cast(MessageModule, import_module(f"{__name__}.{APIS[api_key].stem}_request"))


@cache
def response_module(api_key: int) -> MessageModule:
    """The module of an API's response. Raises `KeyError` for an API that we do not know."""
    return cast(MessageModule, import_module(f"{__name__}.{APIS[api_key].stem}_response"))
