"""An address to connect to. It may differ between a node, a proxy and the harness."""

from typing import NamedTuple, Self


class Address(NamedTuple):
    """``host:port``."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse an address of the form ``host:port``."""
        host, _, port = text.rpartition(":")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
