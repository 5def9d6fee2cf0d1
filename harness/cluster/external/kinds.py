"""Which faults a cluster file makes possible: the class of its cluster, and what is missing."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.cluster.external import compose_cuts
from harness.cluster.external.cluster_file import Loaded
from harness.cluster.external.external_cluster import (
    Cuts,
    Disconnects,
    ExternalCluster,
    Kills,
    Pauses,
    Restarts,
)
from harness.cluster.external.mesh import Proxied
from harness.cluster.external.survey import Survey
from harness.cluster.external.system import ExternalSystem
from model.capabilities.network import CanCut, CanDisconnect, CanRefuse, CanSlow
from model.capabilities.processes import CanKill, CanPause, CanRestart
from nemesis.package import Package


class _Way(NamedTuple):
    """A way to offer capabilities: the class that has them, and the hooks that it needs."""

    kind: type[ExternalCluster]
    verbs: tuple[str, ...]


BY_HOOKS: Mapping[type, _Way] = {
    CanKill: _Way(Kills, ("kill", "start")),
    CanRestart: _Way(Restarts, ("stop", "start")),
    CanPause: _Way(Pauses, ("pause", "resume")),
    CanCut: _Way(Cuts, ("cut", "heal", "reach")),
    CanDisconnect: _Way(Disconnects, ("disconnect", "reconnect", "status")),
}
BY_TOXIPROXY = (CanCut, CanRefuse, CanSlow)


def kind_of(survey: Survey) -> type[ExternalCluster]:
    """Return the class of a cluster with the capabilities for which the file has hooks."""
    loaded = survey.loaded
    bases: list[type[ExternalCluster]] = []
    for capability, way in BY_HOOKS.items():
        by_proxies = capability is CanCut and loaded.content.toxiproxy is not None
        if not by_proxies and not _missing_hooks(survey, way.verbs):
            bases.append(_kind(way, survey))
    if loaded.content.toxiproxy is not None:
        bases.append(Proxied)
    return _combined(tuple(bases))


def _kind(way: _Way, survey: Survey) -> type[ExternalCluster]:
    """Return the class of a way; default hooks of a compose project have one of their own."""
    if way.kind is Cuts:
        return compose_cuts.kind_of(survey.loaded, survey.layout)
    return way.kind


@functools.cache
def _combined(bases: tuple[type[ExternalCluster], ...]) -> type[ExternalCluster]:
    return type("External", (*bases, ExternalCluster), {}) if bases else ExternalCluster


def lacking(survey: Survey, package: Package) -> str | None:
    """Return what the cluster lacks for a fault package; ``None`` if it lacks nothing."""
    if not package.suits(survey.layout):
        return "the cluster file has no such nodes"
    why = _missing(survey, package)
    if why is None and not ExternalSystem(survey).offers(package):
        return "the cluster's release does not have the requests of operators (KIP-455)"
    return why


def _missing(survey: Survey, package: Package) -> str | None:
    kind = kind_of(survey)
    absent = [need for need in package.needs if not issubclass(kind, need)]
    impossible = [need for need in absent if need not in BY_HOOKS and need not in BY_TOXIPROXY]
    if impossible:
        return "the target external does not offer it"
    return "; ".join(_reason(survey, need) for need in absent) or None


def _reason(survey: Survey, need: type) -> str:
    if need not in BY_HOOKS:
        return "the cluster file has no toxiproxy"
    hooks = _missing_hooks(survey, BY_HOOKS[need].verbs)
    named = " and ".join(
        verb if not nodes else f"{verb} of {', '.join(nodes)}" for verb, nodes in hooks.items()
    )
    also = ", and no toxiproxy" if need in BY_TOXIPROXY else ""
    return f"the cluster file has no hook for {named}{also}"


def _missing_hooks(survey: Survey, verbs: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the verbs without hooks, each with the nodes that lack one; none means all nodes."""
    nodes = survey.layout.nodes
    found: dict[str, Sequence[str]] = {}
    for verb in verbs:
        lacking = survey.loaded.without(verb, nodes)
        if lacking:
            found[verb] = () if len(lacking) == len(nodes) else lacking
    return found


def addresses_missing(survey: Survey) -> Iterable[str]:
    """Yield what the harness cannot do without addresses, in sentences."""
    loaded: Loaded = survey.loaded
    for node in survey.layout.nodes:
        entry = loaded.content.nodes.get(node)
        if survey.address(node) is None and loaded.hook(node, "status") is None:
            yield f"nodes.{node}: it needs an address or a hook for status"
        has_own = entry is not None and entry.address is not None
        if loaded.content.toxiproxy is not None and node in survey.layout.brokers and not has_own:
            yield f"nodes.{node}.address: with toxiproxy, name the address past the proxies"
