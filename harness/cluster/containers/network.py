"""A network with fixed addresses and names, which a node keeps when it is restarted.

The names are in every node's ``/etc/hosts``. The engine's name server is not used: it forgets a
node that is down, and would then ask servers outside of this machine.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.cluster.containers.engine import EngineError

if TYPE_CHECKING:
    from docker import DockerClient

TRIES = 10
OPTIONS = {"com.docker.network.bridge.enable_ip_masquerade": "false"}
"""No packet leaves for other networks; published ports are not affected."""


class Network(NamedTuple):
    """One of the engine's networks, with the addresses of its hosts."""

    identity: str
    hosts: Mapping[str, str]
    """The address of each host, by name."""


def create(
    client: "DockerClient", name: str, labels: Mapping[str, str], hosts: Sequence[str]
) -> Network:
    """Create a bridge network on which each host has a fixed address; blocks.

    The engine assigns fixed addresses only in a subnet that it was given, and knows best which
    subnets are free. So it selects one for a draft of the network, which is then created again with
    that subnet. Another harness may take the subnet in between; then this is tried again.
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
    raise EngineError(f"the container engine found no free subnet for the network {name}")


def given(subnet: str, gateway: str | None, hosts: Sequence[str]) -> dict[str, str]:
    """Assign a subnet's addresses in order, without the gateway's.

    Raises :class:`EngineError` if there are too few.
    """
    free = (str(one) for one in ipaddress.ip_network(subnet).hosts() if str(one) != gateway)
    addresses = dict(zip(hosts, free, strict=False))
    if len(addresses) < len(hosts):
        raise EngineError(
            f"the container engine chose the subnet {subnet}, which is too small for this cluster"
        )
    return addresses
