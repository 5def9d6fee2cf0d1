"""Match addresses against ids of the scheme ``ip``, such as ``10.0.0.0/8`` or ``fe80::/10``.

The rules are those of ZooKeeper's ``IPAuthenticationProvider`` (IPv6 since 3.9.4, ZOOKEEPER-4240):
an address (``127.0.0.1``) and optionally the number of leading bits that must be equal. Host names,
net masks, zones (``%eth0``) and IPv4 addresses within IPv6 ones are invalid.
"""

import re
from typing import Final, NamedTuple

_DECIMAL: Final = re.compile(r"([+-]?)0*([0-9]{1,9})")
_HEXADECIMAL: Final = re.compile(r"[+-]?[0-9a-fA-F]+")
_V4_PARTS: Final = 4
_V4_BITS: Final = 32
_V6_GROUPS: Final = 8
_V6_GROUP_DIGITS_MAX: Final = 4
_V6_BITS: Final = 128


class _Range(NamedTuple):
    """An address as a number of ``bits`` bits, of which the first ``prefix`` ones must match."""

    number: int
    bits: int
    prefix: int


def is_valid(pattern: str) -> bool:
    """Is the text an address with or without a prefix length?"""
    return _range(pattern) is not None


def matches(pattern: str, address: str) -> bool:
    """Is an address in the range of a pattern? An invalid pattern matches none."""
    allowed, here = _range(pattern), _address(address)
    if allowed is None or here is None or allowed.bits != here.bits:
        return False
    return (allowed.number ^ here.number) >> (allowed.bits - allowed.prefix) == 0


def _range(pattern: str) -> _Range | None:
    address, slash, length = pattern.partition("/")
    whole = _address(address)
    if whole is None or not slash:
        return whole
    prefix = _decimal(length, whole.bits)
    return None if prefix is None else whole._replace(prefix=prefix)


def _address(text: str) -> _Range | None:
    if ":" in text:
        number, bits = _v6(text), _V6_BITS
    else:
        number, bits = _v4(text), _V4_BITS
    return None if number is None else _Range(number, bits, bits)


def _v4(text: str) -> int | None:
    parts = [_decimal(part, 255) for part in text.split(".")]
    known = [part for part in parts if part is not None]
    return int.from_bytes(bytes(known)) if len(known) == len(parts) == _V4_PARTS else None


def _v6(text: str) -> int | None:
    """Eight groups of hexadecimal digits; one ``::`` stands for one or more groups of zeros."""
    head, *tails = text.split("::")
    before = head.split(":") if head else []
    after = tails[0].split(":") if tails and tails[0] else []
    zeros = _V6_GROUPS - len(before) - len(after)
    if len(tails) > 1 or (zeros < 1 if tails else zeros != 0):
        return None
    number = 0
    for group in [*before, *["0"] * zeros, *after]:
        if len(group) > _V6_GROUP_DIGITS_MAX or not _HEXADECIMAL.fullmatch(group):
            return None
        number = number << 16 | int(group, 16) & 0xFFFF
    return number


def _decimal(text: str, most: int) -> int | None:
    """A number as Java's ``Integer.parseInt`` reads it, from 0 to ``most``."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, digits = found.groups()
    number = -int(digits) if sign == "-" else int(digits)
    return number if 0 <= number <= most else None
