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
        "+".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in names)
        for names in reversed(subject)
    )


def _escaped(value: str) -> str:
    text = "".join(f"\\{each}" if each in _SPECIAL else each for each in value)
    if text.startswith((" ", "#")):
        text = f"\\{text}"
    if text.endswith(" ") and len(text) > 1:
        text = f"{text[:-1]}\\ "
    return text
