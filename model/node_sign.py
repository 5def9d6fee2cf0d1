"""``node-signs.jsonl``: signs, in the logs and folders of a run's nodes, that a node was broken."""

from pathlib import Path
from typing import Literal

import msgspec

from model.history import BadHistory

FILE = "node-signs.jsonl"

Kind = Literal[
    "jvm-crash", "out-of-memory", "disk-full", "dead-thread", "fatal-error", "unexpected-error"
]
"""What a sign shows; docs/anomalies.md describes each."""


class NodeSign(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines of a node's log, or a file in its folder, that show that the node was broken."""

    node: str
    kind: Kind
    time_ns: int | None = None
    """When it was logged first, in nanoseconds since the run began, by the node's own clock.
    ``None`` if the log does not say."""
    last_ns: int | None = None
    """When it was logged last, without a gap of more than a few seconds."""
    count: int = 1
    """The number of lines."""
    line: str
    """The first of them; for a file, its name and the line of it that says the most."""


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(NodeSign)


def encode(sign: NodeSign) -> bytes:
    """Return one line of the file, with its newline."""
    return _ENCODER.encode(sign) + b"\n"


def read(path: Path) -> tuple[NodeSign, ...]:
    """Read the file; raises :class:`~model.history.BadHistory` for a line that cannot be read.

    A run without the file has no signs: it was simulated, or an earlier version made it.
    """
    if not path.is_file():
        return ()
    signs = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            signs.append(_DECODER.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadHistory(f"{path}, line {number}: {error}") from error
    return tuple(signs)
