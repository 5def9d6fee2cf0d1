"""The messages of leader elections, and the greeting of a connection on which they are sent.

The layouts are those of ZooKeeper's ``FastLeaderElection`` (version 2 of its notifications) and
``QuorumCnxManager``; earlier versions are understood.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from broker_impl.errors import WireError
from broker_impl.zookeeper.quorum.ensemble import ServerId
from broker_impl.zookeeper.zxids import epoch_of

BYTES_MAX = 512 * 1024
"""The most bytes of a message (``PACKETMAXSIZE``)."""
GREETING = -65536
"""The version of the greeting, in the place where releases before 3.4.6 send the server's id."""
GREETINGS = (GREETING, -65535)
"""The versions that are understood; the latter lists several addresses."""

_VERSION = 2
_OLDEST = struct.Struct(">iqqq")
_BODY = struct.Struct(">iqqqqii")
_WITH_EPOCH = struct.Struct(">iqqqq")
_GREETING = struct.Struct(">qqi")
_LONG = struct.Struct(">q")


class State(IntEnum):
    """What a server does: it looks for a leader, or has a role in an ensemble that has one."""

    LOOKING = 0
    FOLLOWING = 1
    LEADING = 2
    OBSERVING = 3


class Vote(NamedTuple):
    """A server that is proposed as leader, and the history that makes it a candidate."""

    epoch: int
    """The epoch of its history (``peerEpoch``)."""
    zxid: int
    """The last zxid in its log."""
    leader: ServerId


class Notification(NamedTuple):
    """The vote of one server, as it is sent to another."""

    sender: ServerId
    state: State
    vote: Vote
    round: int
    """The number of the election in which it votes (``electionEpoch``)."""


class Greeting(NamedTuple):
    """The first bytes of a connection, from the server that opened it."""

    sender: ServerId
    size: int
    """The number of bytes that it took."""


def encode(notification: Notification, configuration: str) -> bytes:
    """Encode a notification with its length; the configuration lists the ensemble's servers."""
    vote = notification.vote
    text = configuration.encode()
    body = _BODY.pack(
        notification.state,
        vote.leader,
        vote.zxid,
        notification.round,
        vote.epoch,
        _VERSION,
        len(text),
    )
    return struct.pack(">i", len(body) + len(text)) + body + text


def decode(body: bytes, sender: ServerId) -> Notification:
    """Decode a notification without its length.

    Raises:
        WireError: it is too short, or has an unknown state.
    """
    if len(body) < _OLDEST.size:
        raise WireError(f"a notification has {len(body)} bytes")
    state, leader, zxid, round_ = _OLDEST.unpack_from(body)
    epoch = epoch_of(zxid)
    if len(body) >= _WITH_EPOCH.size:
        *_, epoch = _WITH_EPOCH.unpack_from(body)
    try:
        return Notification(sender, State(state), Vote(epoch, zxid, leader), round_)
    except ValueError:
        raise WireError(f"a notification has the unknown state {state}") from None


def encode_greeting(sender: ServerId, address: str) -> bytes:
    """Encode the first bytes of a connection; ``address`` is that of the sender's election port."""
    text = address.encode()
    return _GREETING.pack(GREETING, sender, len(text)) + text


def decode_greeting(data: bytes) -> Greeting | None:
    """Decode the first bytes of a connection; None until all of them have arrived.

    Raises:
        WireError: they are no greeting.
    """
    if len(data) < _LONG.size:
        return None
    (first,) = _LONG.unpack_from(data)
    if first >= 0:
        return Greeting(first, _LONG.size)
    if first not in GREETINGS:
        raise WireError(f"the version {first} of a greeting is unknown")
    if len(data) < _GREETING.size:
        return None
    _, sender, size = _GREETING.unpack_from(data)
    if not 0 <= size <= BYTES_MAX:
        raise WireError(f"a greeting announces {size} bytes")
    if len(data) < _GREETING.size + size:
        return None
    return Greeting(sender, _GREETING.size + size)
