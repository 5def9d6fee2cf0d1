"""The clients of a simulated cluster that brokers must refuse: the outsider and the intruder."""

from collections.abc import Iterable, Mapping

from harness.cluster.observe.invariant_monitor import Watcher
from harness.cluster.simulated import intruder, outsider
from harness.simulation.host import Host
from harness.simulation.process import Process
from model import roles
from model.layout import Layout
from model.plan import Plan
from model.roles import NodeId


def begin(
    host: Host, plan: Plan, layout: Layout, watcher: Watcher, hosts: Mapping[NodeId, Host]
) -> list[Process]:
    """Start on ``host`` those that the plan has; ``hosts`` are the machines of the nodes."""

    def clock_s(broker: int) -> float:
        return hosts[roles.broker(broker)].clock.monotonic()

    return [
        *outsider.begin(host, plan, layout, watcher),
        *intruder.begin(host, plan, layout, watcher, clock_s),
    ]


def end(processes: Iterable[Process]) -> None:
    """End them, and raise the error of one that failed; the others go on until they are killed."""
    failed = [each for each in processes if each.is_done]
    for each in processes:
        each.kill()
    for each in failed:
        each.result()
