"""The nftables rules, in the network namespace of a node, that drop what it sends or receives.

Each cut has a table of its own, which is replaced when the link is cut again, and removed when it
is healed. What a node exchanges with itself passes.
"""

import ipaddress
from collections.abc import Iterable

from harness.cluster.containers import packets
from model.roles import NodeId

PREFIX = "faultline_"


def to_node(peer: NodeId, addresses: Iterable[str]) -> str:
    """Drop what the node sends to another one, which has these addresses."""
    rules = [
        f"{family} daddr {{ {', '.join(those)} }} counter drop;"
        for family, those in _by_family(addresses).items()
        if those
    ]
    return _replaced(_sent(peer), f"chain output {{ {_hook('output')} {' '.join(rules)} }};")


def from_clients(port: int, nodes: Iterable[str]) -> str:
    """Drop what arrives at the listener for clients from elsewhere than these nodes' addresses."""
    rules = f"iif lo accept; {_others('tcp dport', port, 'saddr', nodes)}"
    return _replaced(_RECEIVED, f"chain input {{ {_hook('input')} {rules} }};")


def to_clients(port: int, nodes: Iterable[str]) -> str:
    """Drop what the listener for clients sends elsewhere than to these nodes' addresses."""
    rules = f"oif lo accept; {_others('tcp sport', port, 'daddr', nodes)}"
    return _replaced(_sent("clients"), f"chain output {{ {_hook('output')} {rules} }};")


def no_rules_to(peer: NodeId) -> str:
    """Remove the rules about what is sent to a peer, ``clients`` included, if there are any."""
    return packets.removed(_sent(peer))


def no_rules_from_clients() -> str:
    """Remove the rules about what clients send, if there are any."""
    return packets.removed(_RECEIVED)


def dropped(listing: str) -> dict[str, int]:
    """Return the packets that each table has dropped, from ``nft --json list ruleset``."""
    counted = packets.counted(listing)
    return {table: count for table, count in counted.items() if table.startswith(PREFIX)}


_RECEIVED = f"{PREFIX}from_clients"


def _sent(peer: NodeId) -> str:
    return f"{PREFIX}to_{peer.replace('-', '_')}"


def _replaced(table: str, chain: str) -> str:
    return f"{packets.removed(table)}; table inet {table} {{ {chain} }}"


def _hook(way: str) -> str:
    return f"type filter hook {way} priority 0;"


def _others(listener: str, port: int, end: str, nodes: Iterable[str]) -> str:
    """The rules for the packets of a listener whose other end is none of these addresses."""
    rules = []
    for family, those in _by_family(nodes).items():
        protocol = {"ip": "ipv4", "ip6": "ipv6"}[family]
        other = f"{family} {end} != {{ {', '.join(those)} }} " if those else ""
        rules.append(f"meta nfproto {protocol} {other}{listener} {port} counter drop;")
    return " ".join(rules)


def _by_family(addresses: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"ip": [], "ip6": []}
    for address in sorted(addresses):
        found["ip" if ipaddress.ip_address(address).version == 4 else "ip6"].append(address)
    return found
