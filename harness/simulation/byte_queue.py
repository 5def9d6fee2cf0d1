"""A queue of bytes between a process and its kernel, for one direction of a connection."""

from collections import deque


class ByteQueue:
    """Bytes in the parts in which they were added."""

    __slots__ = ("_parts", "count")

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self.count = 0
        """The number of bytes in the queue."""

    def append(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._parts.append(data)
        self.count += len(data)

    def clear(self) -> None:
        """Discard all bytes."""
        self._parts.clear()
        self.count = 0

    @property
    def first_bytes(self) -> int:
        """The size of the first part; the queue must not be empty."""
        return len(self._parts[0])

    def take(self, limit: int) -> bytes:
        """Remove and return as many bytes as there are, at most ``limit``."""
        taken: list[bytes] = []
        count = 0
        parts = self._parts
        while parts and count < limit:
            part = parts.popleft()
            if count + len(part) > limit:
                cut = limit - count
                parts.appendleft(part[cut:])
                part = part[:cut]
            taken.append(part)
            count += len(part)
        self.count -= count
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def take_parts(self, limit: int) -> bytes:
        """Remove and return whole parts that fit into ``limit``, joined.

        If not even the first part fits, return the beginning of it.
        """
        parts = self._parts
        data = parts.popleft()
        if len(data) > limit:
            parts.appendleft(data[limit:])
            data = data[:limit]
        elif parts and len(data) + len(parts[0]) <= limit:
            taken = [data]
            size = len(data)
            while parts and size + len(parts[0]) <= limit:
                size += len(parts[0])
                taken.append(parts.popleft())
            data = b"".join(taken)
        self.count -= len(data)
        return data
