"""Principals: the names under which clients are authenticated."""

from collections.abc import Sequence
from typing import Any, Final

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of every connection that is not authenticated."""
_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_NUMBERED: Final = {
    "emailAddress": ("1.2.840.113549.1.9.1", 0x16),
    "serialNumber": ("2.5.4.5", 0x13),
    "dnQualifier": ("2.5.4.46", 0x13),
}
"""Kinds without a short name there: their object identifiers, and the DER types of their values."""
_SPECIAL: Final = frozenset(',+"\\<>;')


def user(name: str) -> str:
    """Return the principal of a user."""
    return f"User:{name}"


def name_of(principal: str) -> str:
    """Return the name of the user whose principal this is."""
    return principal.partition(":")[2]


def of_certificate(certificate: dict[str, Any] | None) -> str:
    """Return the principal of a verified certificate: its subject as in RFC 2253.

    certificate: the result of ``getpeercert``; None or empty if the client showed none.
    """
    if not certificate:
        return ANONYMOUS
    return user(_distinguished_name(certificate.get("subject", ())))


def _distinguished_name(subject: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Join the names of a subject, the most specific one first."""
    return ",".join(
        "+".join(_attribute(kind, value) for kind, value in names) for names in reversed(subject)
    )


def _attribute(kind: str, value: str) -> str:
    """Write one attribute; a kind without a short name as its number and the hex form of DER."""
    if kind not in _NUMBERED:
        return f"{_SHORT.get(kind, kind)}={_escaped(value)}"
    number, tag = _NUMBERED[kind]
    data = value.encode()
    size = len(data).to_bytes(2, "big").lstrip(b"\0") or b"\0"
    length = size if len(data) < 0x80 else bytes([0x80 | len(size)]) + size
    return f"{number}=#{(bytes([tag]) + length + data).hex()}"


def _escaped(value: str) -> str:
    text = "".join(f"\\{each}" if each in _SPECIAL else each for each in value)
    if text.startswith((" ", "#")):
        text = f"\\{text}"
    if text.endswith(" ") and len(text) > 1:
        text = f"{text[:-1]}\\ "
    return text
