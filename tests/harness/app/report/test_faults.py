from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app.report import faults
from harness.app.report.faults import Effect, Fault


@pytest.mark.parametrize(
    ("targets", "nodes"),
    [
        ("broker-1", ["broker-1"]),
        (["broker-2", "broker-1", "broker-2"], ["broker-2", "broker-1"]),
        ([["broker-1", "broker-3"], ["clients", "broker-1"]], ["broker-1", "broker-3", "clients"]),
        ({"links": ["zookeeper>broker-2"], "why": "leader"}, ["zookeeper", "broker-2"]),
        ("leader:orders-0", []),
        (None, []),
        (7, []),
    ],
)
def test_nodes(targets: Any, nodes: list[str]) -> None:
    """Nodes are found in every form of a fault's targets."""
    assert faults.nodes(Fault(id=0, fault="x", targets=targets)) == nodes


@pytest.mark.parametrize(
    ("targets", "text"),
    [
        (None, ""),
        ("controller", "controller"),
        (["broker-1", "broker-2"], "broker-1, broker-2"),
        ([["broker-1", "broker-2"]], "[[broker-1,broker-2]]"),
    ],
)
def test_spoken(targets: Any, text: str) -> None:
    """Simple targets are shown as words."""
    assert faults.spoken(targets) == text


def test_load(tmp_path: Path) -> None:
    """Faults are sorted by time.

    A torn last line is ignored, and any other broken line is an error.
    """
    path = tmp_path / "schedule.jsonl"
    assert faults.load(path) == []
    late = b'{"id": 1, "fault": "kill", "applied_ns": 9, "effect": {"proved": true, "how": "h"}}\n'
    early = b'{"id": 2, "fault": "pause", "asked_ns": 3, "applied_ns": null}\n'
    path.write_bytes(late + early + b'{"id": 3, "fau')
    assert faults.load(path) == [
        Fault(id=2, fault="pause", asked_ns=3),
        Fault(id=1, fault="kill", applied_ns=9, effect=Effect(proved=True, how="h")),
    ]
    path.write_bytes(b'{"id": 3, "fau\n' + late)
    with pytest.raises(msgspec.DecodeError):
        faults.load(path)


@pytest.mark.parametrize(
    ("applied_ns", "healed_ns", "window"),
    [(None, None, None), (5, 8, (5, 8)), (5, None, (5, 20)), (25, None, (25, 25))],
)
def test_window(
    applied_ns: int | None, healed_ns: int | None, window: tuple[int, int] | None
) -> None:
    """A fault without a heal lasts to the end; one that was not applied has no window."""
    fault = Fault(id=0, fault="kill", applied_ns=applied_ns, healed_ns=healed_ns)
    assert fault.window_ns(20) == window


def test_lanes() -> None:
    """Every broker has a lane, and so has any other node that a fault struck."""
    struck = [Fault(id=0, fault="kill", targets=["broker-7", "zookeeper-2"])]
    assert faults.lanes(struck, 2) == [
        "broker-1", "broker-2", "zookeeper", "clients", "broker-7", "zookeeper-2",
    ]  # fmt: skip


def test_colours_do_not_depend_on_the_order() -> None:
    """The same kinds of fault have the same colours on two pages."""
    struck = [Fault(id=number, fault=name) for number, name in enumerate("cab")]
    assert faults.colours(struck) == faults.colours(struck[::-1])
    assert len(set(faults.colours(struck).values())) == 3


@pytest.mark.parametrize(
    ("late_ns", "overran_ns", "text"),
    [
        (None, None, ""),
        (499_999_999, 0, ""),
        (1_640_000_000, 20_000_000, "1.6 s late"),
        (0, 2_000_000_000, "2.0 s too long"),
        (500_000_000, 700_000_000, "0.5 s late, 0.7 s too long"),
    ],
)
def test_a_fault_that_left_its_plan(late_ns: int | None, overran_ns: int | None, text: str) -> None:
    """The page says how late a fault was or how much too long, from half a second on."""
    fault = faults.Fault(1, "kill", late_ns=late_ns, overran_ns=overran_ns)
    assert fault.unpunctual() == text


def test_lanes_of_the_nodes_that_keep_metadata(tmp_path: Path) -> None:
    """The folder says which nodes there were; without their folders, ZooKeeper is shown."""
    assert faults.keepers(tmp_path) == ("zookeeper",)
    for name in ("broker-1", "controller-2", "controller-1", "toxiproxy"):
        (tmp_path / "nodes" / name).mkdir(parents=True)
    assert faults.keepers(tmp_path) == ("controller-1", "controller-2")
    assert faults.lanes([], 1, faults.keepers(tmp_path)) == [
        "broker-1", "controller-1", "controller-2", "clients",
    ]  # fmt: skip


def test_an_ensemble_without_brokers_has_only_its_own_lanes(tmp_path: Path) -> None:
    """The servers have lanes of their own, and there is none for a server that did not exist."""
    for name in ("zookeeper-1", "zookeeper-2"):
        (tmp_path / "nodes" / name).mkdir(parents=True)
    found = faults.lanes([], 0, faults.keepers(tmp_path))
    assert found == ["zookeeper-1", "zookeeper-2", "clients"]
