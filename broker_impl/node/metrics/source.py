"""What metrics read of a broker, and how samples become a family."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from broker_impl.api.services import Services
from broker_impl.coordinator.groups.group import Group
from broker_impl.counts import LIMITS_MS, Durations

Rows = Iterable[tuple[Sequence[str], float]]
"""The values of a family: the values of its labels, and the sample."""


class AllGroups(Protocol):
    """The groups that a broker coordinates."""

    def all(self) -> list[Group]: ...


class Observed(Services, Protocol):
    """A broker that has started."""

    def connections(self) -> dict[str, int]:
        """The number of open connections, by listener."""
        ...


class Idle(Protocol):
    """Measures the idle time of the event loop."""

    idle_s: float


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that the metrics of one broker are read from."""

    broker: Observed
    groups: AllGroups
    log_syncs: Durations
    idle: Idle


def gauge(name: str, about: str, rows: Rows, labels: Sequence[str] = ()) -> Metric:
    """A family of values that rise and fall."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for values, sample in rows:
        family.add_metric(values, sample)
    return family


def counter(name: str, about: str, rows: Rows, labels: Sequence[str] = ()) -> Metric:
    """A family of counts; ``name`` is without ``_total``."""
    family = CounterMetricFamily(name, about, labels=labels)
    for values, sample in rows:
        family.add_metric(values, sample)
    return family


def histogram(
    name: str,
    about: str,
    rows: Iterable[tuple[Sequence[str], Durations]],
    labels: Sequence[str] = (),
) -> Metric:
    """A family of durations in milliseconds, by Prometheus' ranges, each of which has the former's.

    A JMX exporter shows Kafka's histograms with ``_count`` and quantiles; ``_count`` is the same.
    """
    family = HistogramMetricFamily(name, about, labels=labels)
    limits = [*(f"{limit:g}" for limit in LIMITS_MS), "+Inf"]
    for values, durations in rows:
        total, buckets = 0, []
        for limit, count in zip(limits, durations.in_range, strict=True):
            total += count
            buckets.append((limit, float(total)))
        family.add_metric(values, buckets, durations.sum_ms)
    return family


def single(sample: float) -> Rows:
    """The rows of a family with one value and no labels."""
    return [((), sample)]
