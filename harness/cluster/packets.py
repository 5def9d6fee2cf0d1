"""The rules by which a node loses packets, in the words of nft, and what their counters say."""

import json

TABLE = ("inet", "faultline")
_NAME = " ".join(TABLE)
NO_RULES = f"table {_NAME}; delete table {_NAME}"
"""Takes the table away, whether it is there or not."""
NO_TABLE = "No such file"
"""What nft says of a table that is not there."""
_PARTS = 10_000
"""How finely a share is told."""


def rules(share: float) -> str:
    """Drop this share of what comes in and of what goes out, but for what stays in the node.

    A table that was there before is replaced.
    """
    assert 0 <= share <= 1, "a share of all packets"
    drop = f"numgen random mod {_PARTS} < {round(share * _PARTS)} counter drop"
    chains = " ".join(
        f"chain {way} {{ type filter hook {way} priority 0; {interface} lo accept; {drop}; }};"
        for way, interface in (("input", "iif"), ("output", "oif"))
    )
    return f"{NO_RULES}; table {_NAME} {{ {chains} }}"


def dropped(listing: str) -> int:
    """The packets that were counted, in ``nft --json list table``."""
    return sum(
        expression["counter"]["packets"]
        for entry in json.loads(listing)["nftables"]
        for expression in entry.get("rule", {}).get("expr", ())
        if "counter" in expression
    )
