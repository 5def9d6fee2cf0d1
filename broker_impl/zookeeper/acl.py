"""Access control: the schemes world, auth, digest, sasl and ip, with ZooKeeper's rules."""

import base64
import hashlib
import re
from typing import Final

from broker_impl.zookeeper import ip_ranges
from broker_impl.zookeeper.errors import AuthFailed, InvalidAcl, NoAuth
from broker_impl.zookeeper.records import OPEN_ACL, Acl, Id, Perm

WORLD = Id("world", "anyone")
SASL: Final = "sasl"
"""The scheme of clients that have authenticated by SASL; the id is the user's name."""
_ALL_OF_SASL: Final = Id(SASL, "super")
"""Has the permissions of every user of SASL."""
_KERBEROS: Final = re.compile(r"[^/@]*(/[^/@]*)?@[^/@]*")
"""The form that ZooKeeper requires of users with an @."""


def may(acl: tuple[Acl, ...], perm: Perm, ids: tuple[Id, ...]) -> bool:
    """Does a client with these identities have the permission, or any bit of it?"""
    return acl is OPEN_ACL or any(entry.perms & perm and _includes(entry.id, ids) for entry in acl)


def check(acl: tuple[Acl, ...], perm: Perm, ids: tuple[Id, ...], path: str) -> None:
    """Reject a client that lacks the permission.

    Raises:
        NoAuth: none of its identities has it.
    """
    if not may(acl, perm, ids):
        raise NoAuth(path)


def identify(scheme: str, auth: bytes | None, ids: tuple[Id, ...]) -> Id:
    """The identity that a client with the identities ``ids`` gets for its credentials.

    For ``digest`` the credentials are ``user:password`` (ZooKeeper accepts a missing password,
    too); for ``ip`` the server knows the address already and ignores what the client sends.

    Raises:
        AuthFailed: the scheme is unknown, or there are no credentials for ``digest``.
    """
    if scheme == "ip":
        return next(known for known in ids if known.scheme == "ip")
    if scheme != "digest" or auth is None:
        raise AuthFailed(scheme)
    text = auth.decode(errors="replace")
    hashed = hashlib.sha1(text.encode(), usedforsecurity=False).digest()
    return Id("digest", f"{text.partition(':')[0]}:{base64.b64encode(hashed).decode()}")


def resolve(acl: tuple[Acl, ...], ids: tuple[Id, ...], path: str) -> tuple[Acl, ...]:
    """The ACL as a node stores it: ``auth`` replaced by identities, no entry twice.

    Raises:
        InvalidAcl: it is empty, has an unknown scheme or malformed id, or ``auth`` matches none.
    """
    if acl == OPEN_ACL:
        return OPEN_ACL
    kept: dict[Acl, None] = {}
    for entry in acl:
        if entry.id.scheme == "auth":
            mine = [Acl(entry.perms, identity) for identity in ids if identity.scheme != "ip"]
            if not mine:
                raise InvalidAcl(path)
            kept.update(dict.fromkeys(mine))
        elif _well_formed(entry.id):
            kept[entry] = None
        else:
            raise InvalidAcl(path)
    if not kept:
        raise InvalidAcl(path)
    return tuple(kept)


def masked(acl: tuple[Acl, ...]) -> tuple[Acl, ...]:
    """The ACL as shown to a client without ADMIN: no password digests."""
    return tuple(
        Acl(entry.perms, Id("digest", entry.id.id.partition(":")[0] + ":x"))
        if entry.id.scheme == "digest"
        else entry
        for entry in acl
    )


def _includes(allowed: Id, ids: tuple[Id, ...]) -> bool:
    """Does the id of an ACL entry match one of a client's identities?"""
    if allowed.scheme == "ip":
        return any(
            identity.scheme == "ip" and ip_ranges.matches(allowed.id, identity.id)
            for identity in ids
        )
    return allowed == WORLD or allowed in ids or (allowed.scheme == SASL and _ALL_OF_SASL in ids)


def _well_formed(identity: Id) -> bool:
    match identity.scheme:
        case "world":
            return identity == WORLD
        case "digest":
            # Java's split(":") drops empty parts at the end; ZooKeeper wants two parts.
            return identity.id.rstrip(":").count(":") == 1
        case "ip":
            return ip_ranges.is_valid(identity.id)
        case "sasl":
            return "@" not in identity.id or _KERBEROS.fullmatch(identity.id) is not None
        case _:
            return False
