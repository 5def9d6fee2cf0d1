"""Figures of one connection and of sizes, as operators see them; each can be reset."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Sizes:
    """The sizes of packets of one kind, in bytes; -1 before the first."""

    last: int = -1
    min: int = -1
    max: int = -1

    def add(self, size: int) -> None:
        """Add the size of one packet."""
        self.last = size
        if size > self.max:
            self.max = size
        if self.min < 0 or size < self.min:
            self.min = size


@dataclass(slots=True)
class Latency:
    """The time from a request's arrival to its answer, in milliseconds."""

    count: int = 0
    total_ms: float = 0.0
    min_ms: int = 0
    max_ms: int = 0

    @property
    def mean_ms(self) -> float:
        """The mean; 0 before the first request."""
        return self.total_ms / self.count if self.count else 0.0

    def add(self, seconds: float) -> None:
        """Add the latency of one request."""
        ms = seconds * 1000
        whole = int(ms)
        if whole < self.min_ms or not self.count:
            self.min_ms = whole
        if whole > self.max_ms:
            self.max_ms = whole
        self.total_ms += ms
        self.count += 1


@dataclass(slots=True)
class Traffic:
    """What was received and answered on one connection."""

    received: int = 0
    sent: int = 0
    last_op: int | None = None
    """The operation that was answered last."""
    last_cxid: int = -1
    """The last xid that the client has chosen; pings have none."""
    last_zxid: int = -1
    last_response_s: float = 0.0
    """When the last answer was sent, by the loop's clock."""
    last_latency_ms: int = 0
    latency: Latency = field(default_factory=Latency)

    def answered(self, op: int, xid: int, zxid: int, now: float, seconds: float) -> None:
        """Add an answer at a time of the loop's clock, with its latency in seconds."""
        self.last_op = op
        if xid >= 0:
            self.last_cxid = xid
        self.last_zxid = zxid
        self.last_response_s = now
        self.last_latency_ms = int(seconds * 1000)
        self.latency.add(seconds)
