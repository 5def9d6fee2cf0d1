"""The racks of brokers and clients: the option ``racks`` spreads both over that many racks."""

from collections.abc import Mapping
from typing import Any

OPTION = "racks"
"""The number of racks; 0: neither brokers nor clients name a rack."""
BROKER_SETTING, CLIENT_SETTING = "broker.rack", "client.rack"


def _of(number: int, options: Mapping[str, Any]) -> str | None:
    racks = int(options.get(OPTION, 0))
    return f"rack{number % racks}" if racks else None


def of_broker(number: int, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the setting that names the rack of a broker; empty without racks."""
    rack = _of(number, options)
    return {} if rack is None else {BROKER_SETTING: rack}


def of_client(process: int, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the setting that names the rack of a process's consumers; empty without racks."""
    rack = _of(process, options)
    return {} if rack is None else {CLIENT_SETTING: rack}


def of_brokers(
    brokers: int, options: Mapping[str, Any], settings: Mapping[str, str]
) -> dict[int, str]:
    """Return the rack of each broker; empty if the option does not decide it.

    ``settings`` are the plan's own settings of brokers, which take precedence.
    """
    if BROKER_SETTING in settings:
        return {}
    racks = ((number, _of(number, options)) for number in range(1, brokers + 1))
    return {number: rack for number, rack in racks if rack is not None}
