"""The options of plans that only simulated clusters have."""

from collections.abc import Mapping

from harness.cluster.observe.invariant_monitor import INTERVAL_S
from harness.simulation.clock import EPOCH_S
from model import data_directories

OPTIONS: Mapping[str, float] = {
    "latency_ms": 0.2,
    "jitter_ms": 0.8,
    "start_gap_ms": 0,
    "snapshot_ms": 1000 * INTERVAL_S,
    "clients_clock_s": 0,
    "outsider_ms": 0,
    "point_share": 0,
    "point_ms": 1000,
    data_directories.OPTION: 1,
}
"""Options of a plan:

- ``latency_ms``, ``jitter_ms``: the latency of each link, and its largest random addition.
- ``start_gap_ms``: the pause between the starts of two brokers. Starting all at once is closer to
  practice; one by one, the first becomes the controller.
- ``snapshot_ms``: the least time between two snapshots of white-box checks; 0 takes one after every
  batch of events, at twice the cost.
- ``clients_clock_s``: how far the clients' clock, from which records take their times, is ahead of
  all other clocks (behind, if negative).
- ``outsider_ms``: the mean pause between the fetches of a client without rights; 0: there is none.
- ``point_share``, ``point_ms``: the share of code paths of brokers that wait at a point where the
  order of two actions is open, and how long they do so at most, until the last fault is healed.
- ``data_directories``: how many data directories each broker has, all on one disk. With several,
  the ``askers`` move replicas from one to another.
"""
LEAST: Mapping[str, float] = {
    **dict.fromkeys(OPTIONS, 0.0),
    "clients_clock_s": -EPOCH_S,
    data_directories.OPTION: 1,
}
"""The smallest value of each option; no record can have a time before 1970."""
