"""The specification of a cluster's containers, and their creation.

No container is privileged, has a capability that its specification does not list, or restarts by
itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.cluster.containers.network import Network
from harness.cluster.ports import HOST

if TYPE_CHECKING:
    from docker import DockerClient

CPU_PERIOD_US = 100_000
PIDS_MAX = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The specification of one container."""

    image: str
    command: Sequence[str] | None
    """``None``: the image's own command, with its entry point."""
    labels: Mapping[str, str]
    host: str | None = None
    """Its host name on the network; ``None`` for a container without its own network."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The addresses of the host names that it uses."""
    user: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, str] = field(default_factory=dict)
    """The name of each volume, by the path at which it is mounted."""
    publishes: Sequence[int] = ()
    """Ports published to this machine, each at a port that the engine chooses."""
    published_at: Mapping[int, int] = field(default_factory=dict)
    """Those of the published ports whose port on this machine is chosen beforehand."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    """Kernel settings of its own network namespace."""
    memory_bytes: int | None = None
    cpus: float | None = None
    capabilities: Sequence[str] = ()
    network_mode: str = "none"
    """The network that it shares if it has no host name."""


def create(
    client: "DockerClient", name: str | None, recipe: Recipe, network: Network | None
) -> str:
    """Create a container without starting it; return its id. Blocks."""
    from docker.types import LogConfig, Mount

    api = client.api
    limits: dict[str, Any] = {"pids_limit": PIDS_MAX}
    if recipe.memory_bytes is not None:
        limits |= {"mem_limit": recipe.memory_bytes, "memswap_limit": recipe.memory_bytes}
    if recipe.cpus is not None:
        # Not NanoCpus: period and quota cannot change a limit that was set that way.
        limits |= {"cpu_period": CPU_PERIOD_US, "cpu_quota": round(recipe.cpus * CPU_PERIOD_US)}
    networking = None
    if recipe.host is not None:
        assert network is not None, "a container with a host name has a network"
        limits |= {"network_mode": network.identity, "extra_hosts": dict(recipe.names)}
        endpoint = endpoint_of(recipe.host, network)
        networking = {"EndpointsConfig": {network.identity: api.create_endpoint_config(**endpoint)}}
    else:
        limits["network_mode"] = recipe.network_mode
    host_config = api.create_host_config(
        sysctls=dict(recipe.sysctls),
        cap_drop=["ALL"],
        cap_add=list(recipe.capabilities),
        security_opt=["no-new-privileges"],
        port_bindings={
            port: (HOST, recipe.published_at[port]) if port in recipe.published_at else (HOST,)
            for port in recipe.publishes
        },
        mounts=[Mount(target, volume, type="volume") for target, volume in recipe.volumes.items()],
        log_config=LogConfig(type=LogConfig.types.JSON),  # whatever the engine's default is
        **limits,
    )
    made: str = api.create_container(
        recipe.image,
        None if recipe.command is None else list(recipe.command),
        name=name,
        hostname=recipe.host,
        user=recipe.user,
        environment=dict(recipe.environment),
        labels=dict(recipe.labels),
        ports=list(recipe.publishes),
        healthcheck={"test": ["NONE"]},  # the harness probes the nodes itself
        host_config=host_config,
        networking_config=networking,
        use_config_proxy=False,
    )["Id"]
    return made


def endpoint_of(host: str, network: Network) -> dict[str, Any]:
    """The container's endpoint on the network, equal each time that it is connected."""
    return {"ipv4_address": network.hosts[host], "aliases": [host]}
