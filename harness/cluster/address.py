"""A place to connect to. Which one it is depends on who asks: a node, a proxy or the harness."""

from typing import NamedTuple, Self


class Address(NamedTuple):
    """``host:port``."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Self:
        """The address that is written ``host:port``."""
        host, _, port = text.rpartition(":")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
