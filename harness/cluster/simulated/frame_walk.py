"""Finds where Kafka's frames begin in the bytes of a simulated connection; holds none back.

A frame is a size, followed by the header of a request, or by the correlation id of the request that
is answered. A walk that begins in the middle of a connection synchronizes at the first run of bytes
that can only be the beginning of a frame.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from broker_impl.wire.messages.apis import APIS
from harness.cluster.mesh.message_frames import RESPONSE, SIZE_BYTES

_BYTES_MAX: Final = 1 << 27
"""Messages are smaller."""
_CERTAIN_BYTES: Final = 8
"""A smaller message does not show where frames begin in the middle of a connection."""


class Walk:
    """Finds the beginnings of frames in one direction of one connection as bytes arrive."""

    def __init__(self, head: Struct, *, is_lost: bool = True) -> None:
        """Find frames that begin with ``head``.

        ``is_lost``: the first bytes may be in the middle of one.
        """
        self._head = head
        self.is_lost = is_lost
        """True until the beginning of a frame is found, and once something else follows one."""
        self._skip = 0
        self._begun = b""

    def frames(self, data: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the index in ``data`` at which each frame begins, and its head.

        A frame whose head ends in a later run begins at 0 of that run.
        """
        at = min(self._skip, len(data))
        self._skip -= at
        if self.is_lost:
            self._begun = b""
        while at < len(data):
            start = max(at - len(self._begun), 0)
            head = self._begun + data[at : at + self._head.size - len(self._begun)]
            if len(head) < self._head.size:
                self._begun = head
                return
            fields = self._head.unpack(head)
            least = _CERTAIN_BYTES if self.is_lost else self._head.size - SIZE_BYTES
            is_possible = least <= fields[0] < _BYTES_MAX
            self.is_lost = not is_possible or not self._is_plausible(fields)
            if self.is_lost:
                return
            end = at - len(self._begun) + SIZE_BYTES + fields[0]
            self._begun = b""
            yield start, fields
            at = min(end, len(data))
            self._skip = end - at

    def _is_plausible(self, fields: tuple[int, ...]) -> bool:
        if self._head is RESPONSE:
            return fields[1] >= 0
        _, key, version, number = fields
        return key in APIS and version in APIS[key].versions and number >= 0
