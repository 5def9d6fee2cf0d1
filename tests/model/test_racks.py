"""Brokers and clients are spread over the racks; without racks none is named."""

from model import racks


def test_nodes_are_spread_over_racks() -> None:
    """Numbers that differ by the number of racks share one."""
    options = {racks.OPTION: 2}
    assert racks.of_broker(1, options) == {"broker.rack": "rack1"}
    assert racks.of_broker(3, options) == racks.of_broker(1, options)
    assert racks.of_client(4, options) == {"client.rack": "rack0"}


def test_without_racks_there_is_no_setting() -> None:
    """Neither a broker nor a client names a rack."""
    assert racks.of_broker(1, {racks.OPTION: 0}) == {}
    assert racks.of_client(1, {}) == {}


def test_the_racks_of_all_brokers_are_those_of_the_option() -> None:
    """A setting of the plan gives all brokers the same rack, whatever the option says."""
    options = {racks.OPTION: 2}
    assert racks.of_brokers(3, options, {}) == {1: "rack1", 2: "rack0", 3: "rack1"}
    assert racks.of_brokers(3, options, {racks.BROKER_SETTING: "one"}) == {}
    assert racks.of_brokers(3, {}, {}) == {}
