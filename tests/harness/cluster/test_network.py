"""A network of fixed addresses, made where others make networks, too."""

from typing import Any

import pytest
from docker.errors import APIError

from harness.cluster import network
from harness.cluster.engine import EngineError


class Engine:
    """Gives away subnets; the first ``stolen`` that it has given are taken when they are wanted."""

    def __init__(self, stolen: int = 0) -> None:
        self.api = self
        self.networks: dict[str, Any] = {}
        self._stolen = stolen
        self._made = 0

    def create_network(self, name: str, **how: Any) -> dict[str, str]:
        if "ipam" in how:
            if self._stolen > 0:
                self._stolen -= 1
                raise APIError("Pool overlaps with other one on this address space")
            pool = how["ipam"]["Config"][0]
        else:
            pool = {"Subnet": f"172.{18 + self._made}.0.0/16", "Gateway": "172.18.0.1"}
        self._made += 1
        identity = f"{name}-{self._made}"
        self.networks[identity] = {"IPAM": {"Config": [pool]}, "labels": how["labels"]}
        return {"Id": identity}

    def inspect_network(self, identity: str) -> Any:
        return self.networks[identity]

    def remove_network(self, identity: str) -> None:
        del self.networks[identity]


@pytest.mark.parametrize("stolen", [0, 3])
def test_the_subnet_is_the_engine_s_choice(stolen: int) -> None:
    """Somebody may be quicker a few times; in the end there is one network, and no draft."""
    engine = Engine(stolen)
    made = network.create(engine, "n", {"faultline": "x"}, ["toxiproxy", "zookeeper"])
    assert list(engine.networks) == [made.identity]
    assert engine.networks[made.identity]["labels"] == {"faultline": "x"}
    [pool] = engine.networks[made.identity]["IPAM"]["Config"]
    assert pool["Subnet"].startswith("172.")


def test_who_never_gets_one_says_so() -> None:
    """It is not tried for ever."""
    with pytest.raises(EngineError, match="no subnet"):
        network.create(Engine(stolen=1000), "n", {}, ["a"])


def test_addresses_are_given_in_order_without_the_gateway_s() -> None:
    """Each host has one of its own."""
    given = network.given("10.1.0.0/29", "10.1.0.2", ["a", "b", "c"])
    assert given == {"a": "10.1.0.1", "b": "10.1.0.3", "c": "10.1.0.4"}


def test_a_subnet_can_be_too_small() -> None:
    """Who has set up the engine with tiny subnets is told."""
    with pytest.raises(EngineError, match=r"10\.1\.0\.0/30"):
        network.given("10.1.0.0/30", "10.1.0.1", ["a", "b"])
