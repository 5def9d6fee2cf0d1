"""The nftables rules that drop a share of a node's packets, and the counters of those rules."""

import json

TABLE = ("inet", "faultline")
_NAME = " ".join(TABLE)
NO_RULES = f"table {_NAME}; delete table {_NAME}"
"""Removes the table, whether it exists or not."""
NO_TABLE = "No such file"
"""A part of nft's message about a table that does not exist."""
_PARTS = 10_000
"""The resolution of a share."""


def rules(share: float) -> str:
    """Drop this share of incoming and of outgoing packets, except on the loopback interface.

    An existing table is replaced.
    """
    assert 0 <= share <= 1, "the share of dropped packets is from 0 to 1"
    drop = f"numgen random mod {_PARTS} < {round(share * _PARTS)} counter drop"
    chains = " ".join(
        f"chain {way} {{ type filter hook {way} priority 0; {interface} lo accept; {drop}; }};"
        for way, interface in (("input", "iif"), ("output", "oif"))
    )
    return f"{NO_RULES}; table {_NAME} {{ {chains} }}"


def dropped(listing: str) -> int:
    """The number of dropped packets in the output of ``nft --json list table``."""
    return sum(
        expression["counter"]["packets"]
        for entry in json.loads(listing)["nftables"]
        for expression in entry.get("rule", {}).get("expr", ())
        if "counter" in expression
    )
