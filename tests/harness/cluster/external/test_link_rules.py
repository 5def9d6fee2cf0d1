"""Rules name the packets that a cut link loses, and count them."""

import json

from harness.cluster.external import link_rules


def test_a_cut_between_nodes() -> None:
    """What is sent to any address of the peer is dropped; an earlier table is replaced."""
    assert link_rules.to_node("broker-2", ["172.20.0.3", "fd00::3", "172.20.0.2"]) == (
        "table inet faultline_to_broker_2; delete table inet faultline_to_broker_2;"
        " table inet faultline_to_broker_2 { chain output { type filter hook output priority 0;"
        " ip daddr { 172.20.0.2, 172.20.0.3 } counter drop; ip6 daddr { fd00::3 } counter drop; };"
        " }"
    )


def test_a_peer_without_addresses() -> None:
    """A container that does not run has no address: nothing is dropped until it has one."""
    assert "drop" not in link_rules.to_node("broker-2", [])


def test_cuts_from_clients() -> None:
    """Packets at the clients' port are dropped unless the other end is a node or the same one."""
    received = link_rules.from_clients(9092, ["172.20.0.3", "172.20.0.2"])
    assert "hook input priority 0; iif lo accept; meta nfproto ipv4" in received
    assert "ip saddr != { 172.20.0.2, 172.20.0.3 } tcp dport 9092 counter drop;" in received
    assert "meta nfproto ipv6 tcp dport 9092 counter drop;" in received
    sent = link_rules.to_clients(9092, ["172.20.0.2"])
    assert "hook output priority 0; oif lo accept; meta nfproto ipv4" in sent
    assert "ip daddr != { 172.20.0.2 } tcp sport 9092 counter drop;" in sent


def test_each_cut_has_its_own_table() -> None:
    """The rules of a cut are removed, if there are any, without touching those of another."""
    tables = [
        link_rules.no_rules_to("broker-2"),
        link_rules.no_rules_to("clients"),
        link_rules.no_rules_from_clients(),
    ]
    assert tables == [
        f"table inet {name}; delete table inet {name}"
        for name in ("faultline_to_broker_2", "faultline_to_clients", "faultline_from_clients")
    ]
    assert link_rules.to_node("broker-2", []).startswith(tables[0])
    assert link_rules.to_clients(1, []).startswith(tables[1])
    assert link_rules.from_clients(1, []).startswith(tables[2])


def test_counters() -> None:
    """The packets of all rules of a table are counted, and those of strange tables are not."""

    def rule(table: str, packets: int) -> dict[str, object]:
        counter = {"counter": {"packets": packets, "bytes": 0}}
        return {"rule": {"table": table, "expr": [{"match": {}}, counter, {"drop": None}]}}

    ours = "faultline_to_broker_2"
    listing = [
        {"metainfo": {}},
        {"table": {"name": ours}},
        rule(ours, 2),
        rule(ours, 3),
        rule("nat", 7),
    ]
    assert link_rules.dropped(json.dumps({"nftables": listing})) == {ours: 5}
