"""The nftables rules that drop a share of a node's packets, and the counters of those rules."""

import json

TABLE = ("inet", "faultline")


def removed(name: str) -> str:
    """Remove a table of the family ``inet``, whether it exists or not."""
    return f"table inet {name}; delete table inet {name}"


_NAME = " ".join(TABLE)
NO_RULES = removed(TABLE[1])
"""Removes the table of dropped packets."""
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
    return sum(counted(listing).values())


def counted(listing: str) -> dict[str, int]:
    """The packets that the rules of each table have counted, from ``nft --json list``."""
    found: dict[str, int] = {}
    for entry in json.loads(listing)["nftables"]:
        rule = entry.get("rule", {})
        table = rule.get("table", "")
        for expression in rule.get("expr", ()):
            if "counter" in expression:
                found[table] = found.get(table, 0) + expression["counter"]["packets"]
    return found
