"""Who may do what to a node: the schemes world, auth, digest and ip."""

import base64
import hashlib

from broker_impl.zookeeper.errors import AuthFailed, InvalidAcl, NoAuth
from broker_impl.zookeeper.records import Acl, Id, Perm

WORLD = Id("world", "anyone")


def may(acl: tuple[Acl, ...], perm: Perm, ids: tuple[Id, ...]) -> bool:
    """Whether a client with these identities has (any bit of) the permission."""
    return any(entry.perms & perm and (entry.id == WORLD or entry.id in ids) for entry in acl)


def check(acl: tuple[Acl, ...], perm: Perm, ids: tuple[Id, ...], path: str) -> None:
    """Refuse a client without the permission.

    Raises:
        NoAuth: none of its identities has it.
    """
    if not may(acl, perm, ids):
        raise NoAuth(path)


def identify(scheme: str, auth: bytes) -> Id:
    """The identity that credentials prove.

    Raises:
        AuthFailed: an unknown scheme, or no ``user:password`` for digest.
    """
    if scheme != "digest" or b":" not in auth:
        raise AuthFailed(scheme)
    user = auth.partition(b":")[0].decode(errors="replace")
    digest = base64.b64encode(hashlib.sha1(auth, usedforsecurity=False).digest()).decode()
    return Id("digest", f"{user}:{digest}")


def resolve(acl: tuple[Acl, ...], ids: tuple[Id, ...], path: str) -> tuple[Acl, ...]:
    """The ACL as a node keeps it: ``auth`` spelled out, nothing twice.

    Raises:
        InvalidAcl: it is empty, a scheme is unknown, an id malformed, or ``auth`` finds nobody.
    """
    kept: dict[Acl, None] = {}
    for entry in acl:
        if entry.id.scheme == "auth":
            mine = [Acl(entry.perms, who) for who in ids if who.scheme != "ip"]
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


def _well_formed(who: Id) -> bool:
    match who.scheme:
        case "world":
            return who == WORLD
        case "digest":
            return who.id.count(":") == 1
        case "ip":
            return bool(who.id)
        case _:
            return False
