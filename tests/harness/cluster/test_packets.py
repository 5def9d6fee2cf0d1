"""What nft is told, and what it tells."""

import json

from harness.cluster import packets


def test_rules_drop_a_share_both_ways_but_nothing_of_the_node_s_own() -> None:
    """An old table is replaced in the same breath; loopback is let through first."""
    told = packets.rules(0.25)
    assert told.startswith("table inet faultline; delete table inet faultline; table inet")
    for way, interface in (("input", "iif"), ("output", "oif")):
        chain = told[told.index(f"chain {way}") :]
        assert chain.index(f"{interface} lo accept") < chain.index("numgen random mod 10000 < 2500")


def test_the_counters_of_all_rules_are_added_up() -> None:
    """Rules without a counter, chains and the header count for nothing."""
    rules = [
        {"expr": [{"match": {}}, {"accept": None}]},
        {"expr": [{"match": {}}, {"counter": {"packets": 3, "bytes": 180}}, {"drop": None}]},
        {"expr": [{"counter": {"packets": 4, "bytes": 240}}]},
    ]
    listing = [{"metainfo": {}}, {"table": {}}, {"chain": {}}, *({"rule": rule} for rule in rules)]
    assert packets.dropped(json.dumps({"nftables": listing})) == 7
