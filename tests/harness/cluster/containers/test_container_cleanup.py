"""Which engine objects are removed, in which order, and which are reported as left."""

from collections.abc import Callable
from typing import Any

import pytest
from docker.errors import APIError, NotFound

from harness.cluster.containers import container_cleanup, labels

MINE = {labels.OWNER: "1", labels.RUN: "mine"}
OTHERS = {labels.OWNER: "2", labels.RUN: "other"}


class Engine:
    """An engine with one container, network and volume of each of two owners."""

    def __init__(self) -> None:
        self.api = self
        self.things = [
            (kind, f"{kind}-{owner[labels.RUN]}", owner)
            for kind in ("container", "network", "volume")
            for owner in (MINE, OTHERS)
        ]
        self.removed: list[str] = []
        self.refuses: dict[str, Exception] = {}
        self.tries = 0

    def _all(self, kind: str, filters: dict[str, str]) -> list[dict[str, Any]]:
        assert filters == {"label": labels.OWNER}
        return [
            {"Id": name, "Name": name, "Labels": owner}
            for what, name, owner in self.things
            if what == kind
        ]

    def containers(self, *, all: bool, filters: dict[str, str]) -> list[dict[str, Any]]:  # noqa: A002 - the SDK's name
        return self._all("container", filters)

    def networks(self, *, filters: dict[str, str]) -> list[dict[str, Any]]:
        return self._all("network", filters)

    def volumes(self, *, filters: dict[str, str]) -> dict[str, Any]:
        return {"Volumes": self._all("volume", filters) or None}

    def _remove(self, name: str) -> None:
        self.tries += 1
        if name in self.refuses:
            raise self.refuses[name]
        self.removed.append(name)
        self.things = [thing for thing in self.things if thing[1] != name]

    def remove_container(self, name: str, *, force: bool, v: bool) -> None:
        assert force
        self._remove(name)

    def remove_network(self, name: str) -> None:
        self._remove(name)

    def remove_volume(self, name: str) -> None:
        self._remove(name)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(container_cleanup, "BETWEEN_S", 0.0)
    return Engine()


def mine(found: Any) -> bool:
    return bool(found == MINE)


Sweep = Callable[[Any, Callable[[Any], bool]], list[str]]
sweep: Sweep = container_cleanup.sweep


def test_containers_go_before_what_they_hold(engine: Engine) -> None:
    """Containers are removed before networks and volumes; objects of other owners stay."""
    assert sweep(engine, mine) == []
    assert engine.removed == ["container-mine", "network-mine", "volume-mine"]


def test_what_somebody_else_has_removed_is_no_failure(engine: Engine) -> None:
    """An object that another sweep has removed meanwhile is no failure."""
    engine.refuses = {"network-mine": NotFound("gone")}
    assert sweep(engine, mine) == []


def test_what_cannot_be_removed_is_tried_again_and_told(engine: Engine) -> None:
    """An object that cannot be removed is retried and reported; the others are removed."""
    engine.refuses = {"network-mine": APIError("network has active endpoints")}
    [left] = sweep(engine, mine)
    assert "network-mine" in left
    assert "active endpoints" in left
    assert engine.removed == ["container-mine", "volume-mine"]
    assert engine.tries == 2 + container_cleanup.TRIES
