"""A network of fixed addresses is made while other programs make networks, too."""

from typing import Any

import pytest
from docker.errors import APIError

from harness.cluster.containers import network
from harness.cluster.containers.engine import EngineError


class Engine:
    """An engine that assigns subnets and refuses the first ``stolen`` that are requested again."""

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
    """If another program takes the subnet first, creation is repeated; one network is left."""
    engine = Engine(stolen)
    made = network.create(engine, "n", {"faultline": "x"}, ["toxiproxy", "zookeeper"])
    assert list(engine.networks) == [made.identity]
    assert engine.networks[made.identity]["labels"] == {"faultline": "x"}
    [pool] = engine.networks[made.identity]["IPAM"]["Config"]
    assert pool["Subnet"].startswith("172.")


def test_who_never_gets_one_says_so() -> None:
    """Creation fails after a bounded number of tries."""
    with pytest.raises(EngineError, match="no free subnet"):
        network.create(Engine(stolen=1000), "n", {}, ["a"])


def test_addresses_are_given_in_order_without_the_gateway_s() -> None:
    """Each host has an address of its own, and none has the gateway's."""
    given = network.given("10.1.0.0/29", "10.1.0.2", ["a", "b", "c"])
    assert given == {"a": "10.1.0.1", "b": "10.1.0.3", "c": "10.1.0.4"}


def test_a_subnet_can_be_too_small() -> None:
    """A subnet that is too small for the hosts is an error that names it."""
    with pytest.raises(EngineError, match=r"10\.1\.0\.0/30"):
        network.given("10.1.0.0/30", "10.1.0.1", ["a", "b"])
