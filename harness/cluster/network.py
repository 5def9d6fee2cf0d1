"""A network of fixed addresses: a node that comes back is where it was, and is found by its name.

Names stand in every node's ``/etc/hosts``. The engine's name server is not asked: it forgets a node
that is down, and would then ask the world outside.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.cluster.engine import EngineError

if TYPE_CHECKING:
    from docker import DockerClient

TRIES = 10
OPTIONS = {"com.docker.network.bridge.enable_ip_masquerade": "false"}
"""Nothing leaves for the world outside; published ports are not touched by this."""


class Network(NamedTuple):
    """One of the engine's networks, with its addresses given away."""

    identity: str
    hosts: Mapping[str, str]
    """Host name to address."""


def create(
    client: "DockerClient", name: str, labels: Mapping[str, str], hosts: Sequence[str]
) -> Network:
    """A bridge on which each host has an address that stays its own; blocks.

    The engine gives fixed addresses only in a subnet that it was told, and knows best which ones
    are free: so it chooses one, is asked which, and is told it. Another harness may be quicker.
    """
    from docker.errors import APIError
    from docker.types import IPAMConfig, IPAMPool

    for _ in range(TRIES):
        draft = client.api.create_network(name, driver="bridge", labels=dict(labels))["Id"]
        pools = client.api.inspect_network(draft)["IPAM"]["Config"]
        pool = next(pool for pool in pools if "." in pool["Subnet"])  # there may be one of IPv6
        client.api.remove_network(draft)
        addresses = given(pool["Subnet"], pool.get("Gateway"), hosts)
        ipam = IPAMConfig(pool_configs=[IPAMPool(pool["Subnet"], gateway=pool.get("Gateway"))])
        try:
            made = client.api.create_network(
                name, driver="bridge", labels=dict(labels), ipam=ipam, options=OPTIONS
            )
        except APIError as error:
            if "overlaps" not in str(error):
                raise
        else:
            return Network(made["Id"], addresses)
    raise EngineError(f"the engine has no subnet for {name} that stays free")


def given(subnet: str, gateway: str | None, hosts: Sequence[str]) -> dict[str, str]:
    """Addresses of a subnet in order, the gateway's left out; :class:`EngineError` if too few."""
    free = (str(one) for one in ipaddress.ip_network(subnet).hosts() if str(one) != gateway)
    addresses = dict(zip(hosts, free, strict=False))
    if len(addresses) < len(hosts):
        raise EngineError(f"{subnet}, the engine's choice, is too small for this cluster")
    return addresses
