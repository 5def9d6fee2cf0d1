"""Random requests on few nodes, so that they meet."""

import random

from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    SEQUENTIAL,
    Acl,
    CreateRequest,
    Id,
    MultiRequest,
    Nothing,
    Op,
    PathVersion,
    SetAclRequest,
    SetDataRequest,
)
from broker_impl.zookeeper.txn_records import CreateSessionTxn

PATHS = ("/a", "/a/b", "/a/b/c", "/d", "/d/e")
IDENTITY = Id("digest", "u:p")
ACLS = (OPEN_ACL, (Acl(31, IDENTITY),), (Acl(1, Id("world", "anyone")), Acl(31, IDENTITY)))
SESSIONS = (7, 8)
_FLAGS = (0, 0, 0, EPHEMERAL, SEQUENTIAL, EPHEMERAL | SEQUENTIAL)


def draw(rng: random.Random) -> tuple[int, Record]:
    """Return a request: a write, a multi, or the beginning or end of a session."""
    kind = rng.randrange(12)
    if kind == 0:
        return Op.CLOSE_SESSION, Nothing()
    if kind <= 2:
        return Op.CREATE_SESSION, CreateSessionTxn(rng.choice([4000, 8000]))
    if kind == 3:
        return Op.MULTI, MultiRequest((_single(rng), _single(rng)))
    return _single(rng)


def _single(rng: random.Random) -> tuple[int, Record]:
    path, acl = rng.choice(PATHS), rng.choice(ACLS)
    match rng.randrange(6):
        case 0:
            return Op.DELETE, PathVersion(path, -1)
        case 1:
            return Op.SET_DATA, SetDataRequest(path, rng.randbytes(rng.choice([3, 30, 5000])), -1)
        case 2:
            return Op.SET_ACL, SetAclRequest(path, acl, -1)
        case _:
            return Op.CREATE, CreateRequest(path, b"x", acl, rng.choice(_FLAGS))
