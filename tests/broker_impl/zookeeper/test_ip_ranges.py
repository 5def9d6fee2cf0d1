import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.zookeeper.ip_ranges import is_valid, matches

ADDRESSES = st.ip_addresses().filter(lambda address: not {".", ":"} <= set(str(address)))
"""Addresses without IPv4 addresses written within IPv6 ones, which ZooKeeper refuses."""


@pytest.mark.parametrize(
    ("pattern", "address", "matched"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.0/8", "127.200.0.9", True),
        ("127.0.0.0/8", "128.0.0.1", False),
        ("127.0.0.1/8", "127.9.9.9", True),
        ("127.0.0.1/32", "127.0.0.1", True),
        ("127.0.0.1/31", "127.0.0.0", True),
        ("127.0.0.1/31", "127.0.0.2", False),
        ("10.255.255.255/0", "127.0.0.1", True),
        ("010.000.1.1", "10.0.1.1", True),
        ("+127.0.0.1/+8", "127.3.2.1", True),
        ("::1", "::1", True),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("2001:DB8::/32", "2001:db8:0:1::7", True),
        ("2001:db8::/33", "2001:db8:8000::1", False),
        ("::/0", "2001:db8::1", True),
        ("::/0", "127.0.0.1", False),
        ("0.0.0.0/0", "::1", False),
        ("::/0", "fe80::1%eth0", False),
        ("127.0.0.-0/" + "0" * 5000 + "24", "127.0.0.9", True),
        ("300.1.1.1", "300.1.1.1", False),
        ("127.0.0.1", "", False),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_pattern_matches_the_addresses_with_its_prefix(
    pattern: str, address: str, matched: bool
) -> None:
    """A pattern matches the addresses with its prefix, or one address without a prefix length.

    IPv4 and IPv6 addresses never match each other.
    """
    assert matches(pattern, address) is matched


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/8",
        "127",
        "127.0.0",
        "127.0.0.1.1",
        "127.0.0.1.",
        "127.0..1",
        "256.0.0.1",
        "300.1.1.1",
        "-1.0.0.1",
        "1_0.0.0.1",
        " 127.0.0.1",
        "127.0.0.1 ",
        "0x7f.0.0.1",
        "localhost",
        "a.b.c.d",
        "\u0661.0.0.1",
        "127.0.0.1/",
        "127.0.0.1/-1",
        "127.0.0.1/33",
        "127.0.0.1/8/8",
        "127.0.0.1/255.0.0.0",
        "127.0.0.1/eight",
        "127.0.0.1/" + "9" * 5000,
        ":",
        ":::",
        "1::2::3",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::8",
        "12345::",
        "g::",
        "1: 2::",
        "::127.0.0.1",
        "[::1]",
        "fe80::1%eth0",
        "::/129",
        "::/-1",
        "::/",
    ],
    ids=lambda value: value[:30],
)
def test_what_is_no_address_is_invalid_and_matches_no_one(pattern: str) -> None:
    """Names, masks, zones, spaces and numbers out of range are refused."""
    assert not is_valid(pattern)
    assert not matches(pattern, "127.0.0.1")
    assert not matches(pattern, "::1")


@given(ADDRESSES, ADDRESSES, st.data())
def test_matching_agrees_with_the_standard_library(
    network: ipaddress.IPv4Address | ipaddress.IPv6Address,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
    data: st.DataObject,
) -> None:
    """Every address and prefix length of the standard library has the same meaning here."""
    bits = data.draw(st.integers(0, network.max_prefixlen))
    pattern = f"{network}/{bits}"
    expected = ipaddress.ip_network(pattern, strict=False)
    assert is_valid(pattern)
    assert matches(pattern, str(network))
    assert matches(pattern, str(address)) is (address in expected)


@given(st.text(alphabet="0123456789abf:./+-% "), st.ip_addresses().map(str))
def test_any_text_is_judged_without_an_error(pattern: str, address: str) -> None:
    """Any text is judged without an error, and a pattern that matches an address is valid."""
    assert is_valid(pattern) or not matches(pattern, address)
