"""Parse the addresses in settings: listeners, single addresses, and a ZooKeeper ensemble."""

from typing import NamedTuple

from broker_impl.errors import ConfigError


class Endpoint(NamedTuple):
    """One ``NAME://host:port``; an empty host means every interface."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    """Parse ``NAME://host:port``; a ConfigError says what is wrong."""
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (name and separator and colon and _is_port(port)):
        raise ConfigError(f"{text}: a listener must be written as NAME://host:port")
    return Endpoint(name.upper(), host.strip("[]"), int(port))


def parse_address(text: str, name: str) -> tuple[str, int]:
    """Parse ``host:port``, the value of the setting ``name``."""
    host, colon, port = text.strip().rpartition(":")
    if not (host and colon and _is_port(port)):
        raise ConfigError(f"{name}={text}: must be host:port")
    return host, int(port)


def check_ensemble(connect: str) -> None:
    """Check ``host:port,host:port/chroot``; ZooKeeper's default port is 2181."""
    servers, _, chroot = connect.partition("/")
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not (host if colon else port) or (colon and not _is_port(port)):
            raise ConfigError(f"zookeeper.connect={connect}: must be host:port,host:port/chroot")
    if "" in chroot.rstrip("/").split("/") and chroot.strip("/"):
        raise ConfigError(f"zookeeper.connect={connect}: the chroot must not have an empty part")


def _is_port(text: str) -> bool:
    return text.isdecimal() and text.isascii() and int(text) < 65536
