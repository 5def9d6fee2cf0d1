"""The target ``external``, as the catalogue lists it."""

import random
from pathlib import Path

import msgspec

from harness.cluster.external import cluster_file, kinds
from harness.cluster.external.cluster_file import BadClusterFile, Loaded
from harness.cluster.external.external_cluster import ExternalCluster
from harness.cluster.external.survey import Survey, surveyed
from harness.cluster.external.system import NAME, ExternalSystem
from harness.cluster.system import System
from harness.cluster.target import Target
from model.plan import Plan
from nemesis.package import Package
from workloads import needs
from workloads.client.aio_connection import connection_arguments
from workloads.client.aio_settings import BadSetting
from workloads.client.confluent_settings import connection_refusal
from workloads.package import Workload

NO_FILE = "name the file of your cluster: --cluster FILE"
_SYSTEMS = ("kafka", NAME)
"""The systems that a plan may name: the default, and that of a plan of this target."""
_MIN_SESSION, _MIN_SESSION_MS = "group.min.session.timeout.ms", 6000
"""The shortest session of a member that coordinators accept, with Kafka's default."""
_SESSION, _HEARTBEAT, _POLL = (
    *("session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"),
)
BROKERS_DEFAULT = Plan().brokers


def _survey() -> Survey:
    loaded = cluster_file.selected()
    if loaded is None:
        raise BadClusterFile(f"--target {NAME}: {NO_FILE}")
    found = surveyed(loaded)
    for why in kinds.addresses_missing(found):
        raise BadClusterFile(f"--cluster {loaded.path}: {why}")
    return found


def _refusal() -> str | None:
    return NO_FILE if cluster_file.selected() is None else None


def _system(plan: Plan) -> System:
    return ExternalSystem(_survey())


def _kind(plan: Plan) -> type[ExternalCluster]:
    return kinds.kind_of(_survey())


def _lacks(package: Package, plan: Plan) -> str | None:
    return kinds.lacking(_survey(), package)


def _complete(plan: Plan, workload: Workload) -> Plan:
    """Complete a plan with the cluster's own nodes and settings; see ``Target.complete``."""
    found = _survey()
    for why in (
        *(_wrong_size(plan, found), _wrong_settings(plan, found)),
        *(_unconfirmed(plan, found.loaded), _wrong_client(plan, workload, found.loaded)),
        _missing_features(plan, workload, found),
    ):
        if why is not None:
            raise ValueError(why)
    return msgspec.structs.replace(
        plan,
        system=NAME,
        brokers=len(found.layout.brokers),
        broker=dict(found.facts.broker),
        consumer={**_session(plan, workload, found), **plan.consumer},
    )


def _wrong_size(plan: Plan, found: Survey) -> str | None:
    size = len(found.layout.brokers)
    if plan.system not in _SYSTEMS:
        return f"--system {plan.system}: the target {NAME} tests the cluster that you run"
    if plan.brokers not in (BROKERS_DEFAULT, size):
        return f"--brokers {plan.brokers}: the cluster has {size}"
    return None


def _wrong_settings(plan: Plan, found: Survey) -> str | None:
    """Return which broker setting of a plan the cluster does not have; a run sets none."""
    for name, value in plan.broker.items():
        reported = found.facts.broker.get(name)
        if reported != value:
            has = "does not report it" if reported is None else f"has {reported}"
            return f"--set broker.{name}: a run cannot configure your brokers; the cluster {has}"
    return None


def _unconfirmed(plan: Plan, loaded: Loaded) -> str | None:
    if loaded.is_confirmed or plan.nemesis in ((), ("none",)):
        return None
    return (
        f"--target {NAME}: faults break the cluster of {loaded.path.name}; confirm them with"
        " --yes-break-it or with confirm = true in the file, or write --nemesis none"
    )


def _wrong_client(plan: Plan, workload: Workload, loaded: Loaded) -> str | None:
    """Return which setting of the file's clients the client library of a plan refuses."""
    library = plan.options.get("client", workload.options.get("client"))
    try:
        if library == "librdkafka":
            why = connection_refusal(loaded.properties)
        else:
            connection_arguments(loaded.properties)
            why = None
    except BadSetting as error:
        why = str(error)
    return None if why is None else f"--cluster {loaded.path}: client.{why}"


def _missing_features(plan: Plan, workload: Workload, found: Survey) -> str | None:
    with_defaults = msgspec.structs.replace(
        plan,
        options={**workload.options, **plan.options},
        producer={**workload.producer, **plan.producer},
        consumer={**workload.consumer, **plan.consumer},
    )
    release = f"the cluster (about Apache Kafka {found.facts.release})"
    return needs.refusal(workload.name, workload.needs(with_defaults), found.apis, release)


def _session(plan: Plan, workload: Workload, found: Survey) -> dict[str, str]:
    """Return longer timeouts of members, if the coordinators do not accept the workload's."""
    wanted = workload.consumer.get(_SESSION)
    reported = found.facts.broker.get(_MIN_SESSION, "")
    least_ms = int(reported) if reported.isdecimal() else _MIN_SESSION_MS
    if wanted is None or int(wanted) >= least_ms or _SESSION in plan.consumer:
        return {}
    poll_ms = max(int(workload.consumer.get(_POLL, "0")), 2 * least_ms)
    return {_SESSION: str(least_ms), _HEARTBEAT: str(least_ms // 6), _POLL: str(poll_ms)}


def _make(plan: Plan, folder: Path, rng: random.Random) -> ExternalCluster:
    return _kind(plan)(plan, folder, rng)


TARGET = Target(
    name=NAME,
    kind=ExternalCluster,
    make=_make,
    kind_of=_kind,
    system=_system,
    owns_cluster=False,
    complete=_complete,
    refusal=_refusal,
    lacks=_lacks,
)
