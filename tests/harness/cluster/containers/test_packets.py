"""The rules that nft receives, and the counters that it reports."""

import json

from harness.cluster.containers import packets


def test_rules_drop_a_share_both_ways_but_nothing_of_the_node_s_own() -> None:
    """New rules replace an old table atomically, and accept loopback packets first."""
    told = packets.rules(0.25)
    assert told.startswith("table inet faultline; delete table inet faultline; table inet")
    for way, interface in (("input", "iif"), ("output", "oif")):
        chain = told[told.index(f"chain {way}") :]
        assert chain.index(f"{interface} lo accept") < chain.index("numgen random mod 10000 < 2500")


def test_the_counters_of_all_rules_are_added_up() -> None:
    """The counters of all rules are added up; other entries count for nothing."""
    rules = [
        {"expr": [{"match": {}}, {"accept": None}]},
        {"expr": [{"match": {}}, {"counter": {"packets": 3, "bytes": 180}}, {"drop": None}]},
        {"expr": [{"counter": {"packets": 4, "bytes": 240}}]},
    ]
    listing = [{"metainfo": {}}, {"table": {}}, {"chain": {}}, *({"rule": rule} for rule in rules)]
    assert packets.dropped(json.dumps({"nftables": listing})) == 7
