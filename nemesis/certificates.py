"""expire-certificate: a broker's certificate is replaced by one that clients do not accept.

The key store file of the broker is replaced, and the broker is asked to read it (KIP-226). The new
certificate has expired, or an unknown authority has issued it. Connections that exist continue; a
client that connects does not accept the broker, and other brokers do not, either. The heal replaces
the certificate by a valid one.
"""

import asyncio
import contextlib
import random
from typing import Any, Literal, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import HasProcesses
from model.capabilities.security import CanReplaceCertificates, Certificate, Handshake
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import Applied, Effect, Fault, Package, has_brokers

WITHIN_S = 12.0
"""How long a broker may take to serve the request, if it must find ZooKeeper first."""
LOOK_EVERY_S = 0.1
LASTING_S = (0.5, 8.0)
OVERHEAD_S = 2.0


class CertificateOptions(Options, frozen=True, kw_only=True):
    """The options of ``expire-certificate``."""

    certificate: Literal["expired", "foreign"] = "expired"
    """Why clients do not accept it: it has expired, or an unknown authority has issued it."""


class Certified(Cluster, CanReplaceCertificates, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker, and why its certificate is not accepted."""
    low, high = LASTING_S
    duration_s = low * (high / low) ** rng.random()
    options = {"certificate": rng.choice(("expired", "foreign"))}
    target = aim.draw_broker(rng, shape)
    return Drawn("expire-certificate", duration_s, target, options, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Certified, fault: str, targets: Any, options: CertificateOptions, rng: random.Random
) -> Applied:
    """Replace the certificates; proved when a client rejects each of them in its handshake."""
    nodes = await aim.resolve(cluster, targets, rng)
    shown = [await _until_shown(cluster, node, options.certificate) for node in nodes]
    return Applied(nodes, _effect(nodes, shown, "rejected"))


async def heal(cluster: Certified, applied: Applied) -> Effect:
    """Restore valid certificates; proved when clients accept those of all brokers that run.

    A broker that is down reads its key store when it starts.
    """
    shown = [await _until_shown(cluster, node, "valid") for node in applied.targets]
    up = [node for node in applied.targets if await aim.stands(cluster, node)]
    known = dict(zip(applied.targets, shown, strict=True))
    return _effect(up, [known[node] for node in up], "verified")


async def _until_shown(cluster: Certified, node: NodeId, certificate: Certificate) -> Handshake:
    """Replace a broker's certificate; return what a client says of it in the end."""
    wanted = "verified" if certificate == "valid" else "rejected"
    said: Handshake = "silence"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WITHIN_S):
            while True:
                await cluster.replace_certificate(node, certificate)
                said = await cluster.handshake(node)
                if said == wanted or not await aim.stands(cluster, node):
                    break
                await asyncio.sleep(LOOK_EVERY_S)
    return said


def _effect(nodes: tuple[NodeId, ...] | list[NodeId], shown: list[Handshake], all_: str) -> Effect:
    how = ", ".join(
        f"the certificate of {node}: {said}" for node, said in zip(nodes, shown, strict=True)
    )
    return Effect(all(said == all_ for said in shown), how or "no broker runs")


PACKAGE = Package(
    name="certificates",
    suits=has_brokers,
    faults=(Fault("expire-certificate", CertificateOptions, aim.BROKERS),),
    needs=(CanReplaceCertificates, HasProcesses, HasRoles),
    color="#8ca252",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
)
