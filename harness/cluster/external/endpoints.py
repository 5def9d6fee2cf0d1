"""Disconnects a container from all of its networks, and connects it again as it was.

The engine forgets the aliases and the fixed addresses of a container that it disconnects. They are
in a file until the container has been connected again, so that any later command can do that.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.cluster.containers.engine import Engine
from harness.cluster.external.compose import ComposeNode
from harness.cluster.state_folder import state_folder


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How a container is connected to a network: what the user configured, and the aliases."""

    ipv4_address: str | None = None
    ipv6_address: str | None = None
    link_local_ips: list[str] | None = None
    aliases: list[str] | None = None
    links: list[tuple[str, str]] | None = None
    driver_opt: dict[str, str] | None = None

    @classmethod
    def from_inspection(cls, found: Mapping[str, Any]) -> "Endpoint":
        """Convert an entry of ``NetworkSettings.Networks``."""
        fixed = found.get("IPAMConfig") or {}
        links = [link.split(":", 1) for link in found.get("Links") or ()]
        return cls(
            ipv4_address=fixed.get("IPv4Address") or None,
            ipv6_address=fixed.get("IPv6Address") or None,
            link_local_ips=fixed.get("LinkLocalIPs") or None,
            aliases=found.get("Aliases") or None,
            links=[(name, alias) for name, alias in links] or None,
            driver_opt=found.get("DriverOpts") or None,
        )


class Disconnected(msgspec.Struct, frozen=True, kw_only=True):
    """A container that has been disconnected, and its endpoints by network."""

    identity: str
    endpoints: dict[str, Endpoint]


class Endpoints:
    """The endpoints of one node of a compose project."""

    def __init__(self, engine: Engine, project: str, node: ComposeNode) -> None:
        self._engine = engine
        self._node = node
        folder = state_folder().parent / "compose"
        self._path = folder / f"{project}.{node.name}.json"

    async def disconnect(self) -> None:
        """Disconnect the container from all networks; write down how it was connected before."""
        attached = await self._attached()
        known = self._read()
        earlier = {} if known is None else known.endpoints
        self._write({**attached, **earlier})
        await self._detach(attached)

    async def keep_out(self) -> None:
        """Disconnect a container again after its start, at which the engine may connect it."""
        if self._read() is not None:
            await self._detach(await self._attached())

    async def reconnect(self) -> None:
        """Connect the container as it was; no effect if it was not disconnected."""
        known = self._read()
        if known is not None:
            attached = await self._attached()
            for network, endpoint in known.endpoints.items():
                if network not in attached:
                    await self._engine.call(
                        self._engine.client.api.connect_container_to_network,
                        self._node.identity,
                        network,
                        **msgspec.structs.asdict(endpoint),
                    )
        self._path.unlink(missing_ok=True)

    async def _attached(self) -> dict[str, Endpoint]:
        api = self._engine.client.api
        found = await self._engine.call(api.inspect_container, self._node.identity)
        networks = found["NetworkSettings"]["Networks"]
        return {name: Endpoint.from_inspection(each) for name, each in networks.items()}

    async def _detach(self, attached: Mapping[str, Endpoint]) -> None:
        api = self._engine.client.api
        for network in attached:
            await self._engine.call(
                api.disconnect_container_from_network, self._node.identity, network
            )

    def _read(self) -> Disconnected | None:
        """Return what is known of this very container; another one had the name before."""
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=Disconnected)
        except FileNotFoundError:
            return None
        return found if found.identity == self._node.identity else None

    def _write(self, endpoints: dict[str, Endpoint]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        record = Disconnected(identity=self._node.identity, endpoints=endpoints)
        _replace(self._path, msgspec.json.encode(record))


def _replace(path: Path, content: bytes) -> None:
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(path)
