"""One end of a TCP connection as the kernel keeps it, alive for longer than its process at times.

A process hands bytes to ``send`` and takes them from ``receive``; what happens in between follows
Linux. Segments arrive in order or not at all, so recovery is simple: everything from the first
unacknowledged segment on is sent again when the timer says so.
"""

import errno
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.simulation.segment import FIN, PROBE, RST, SYN, Address, Segment, end_of
from harness.simulation.taps import Deliver, Hold, Run

if TYPE_CHECKING:
    from harness.simulation.network import Link
    from harness.simulation.stack import Listener, Stack


def _nothing() -> None:
    """Nobody listens."""


class Socket:
    """A connection's end on one host.

    ``on_readable`` is called when bytes, the end of the stream or an error wait to be received,
    ``on_writable`` when there is room to send again, or an error. ``on_connected`` tells, once,
    how a connect has ended.
    """

    def __init__(
        self,
        stack: "Stack",
        link: "Link",
        local: Address,
        remote: Address,
        *,
        owner: object,
        listener: "Listener | None" = None,
    ) -> None:
        """``owner``: the process; ``listener``: whom the peer connected to, at the server's end."""
        self.stack = stack
        self.owner = owner
        self.local = local
        self.remote = remote
        self.listener = listener
        """Where it waits until the process accepts it."""
        self.is_server = listener is not None
        self.is_established = False
        self.is_gone = False
        """The kernel has forgotten it."""
        self.on_readable: Callable[[], None] = _nothing
        self.on_writable: Callable[[], None] = _nothing
        self.on_connected: Callable[[OSError | None], None] = lambda error: None
        self._not_before = 0.0
        """When the last segment arrives that was sent; later ones do not overtake it."""
        self.link = link
        """The way to the peer's host."""
        self._options = stack.options
        self._timeline = stack.timeline
        self._error: OSError | None = None
        self._was_reset = False
        self._is_orphan = False
        """The process has closed it, or ended."""
        # What is sent.
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._flight: deque[Segment] = deque()
        self._in_flight = 0
        self._sent_at = 0.0
        """When the flight was sent, the last time, or else had last progress."""
        self._progress_at = 0.0
        """When something of a flight was last acknowledged, or a flight began."""
        self._next = 0
        self._una = 0
        self._window = 0
        self._has_fin = False
        """The process sends no more; a FIN follows what is queued."""
        self._fin_sent = False
        self._was_full = False
        self._retries = 0
        self._heard_at = self._timeline.now
        """When the peer was last heard."""
        self._timer_is_set = False
        self._rto_s = self._options.rto_s_min
        # What is received.
        self._inbox: deque[bytes] = deque()
        self._unread = 0
        self._expected = 0
        self._got_fin = False
        self._window_told = 0
        self._echo = 0.0
        self._held: deque[bytes] | None = None
        """What a tap holds back, and all that came behind it; an empty run is the end."""

    # The process's side.

    def open(self, syn: Segment | None = None) -> None:
        """Send a SYN: the first one, or the answer to a client's."""
        if syn is not None:
            self._expected = syn.end
            self._echo = syn.stamp
        self._transmit(b"", SYN)

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Take as much as there is room for, and say how much.

        Raises:
            OSError: the connection is broken; or the process has said that it sends no more.
        """
        self._raise_error()
        if self._has_fin or self.is_gone:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        room = self._options.send_buffer_bytes - self._queued - self._in_flight
        count = min(room, len(data))
        if count < len(data):
            self._was_full = True
        if count <= 0:
            return 0
        self._queue.append(bytes(data[:count]))
        self._queued += count
        self._push()
        return count

    def receive(self, limit: int) -> bytes | None:
        """Bytes, ``b""`` at the end of the stream, ``None`` when nothing waits.

        Raises:
            OSError: the connection is broken, and what came before that is read.
        """
        if not self._unread:
            if self._got_fin:
                return b""
            self._raise_error()
            return b"" if self._was_reset else None
        parts: list[bytes] = []
        count = 0
        inbox = self._inbox
        while inbox and count < limit:
            part = inbox.popleft()
            if count + len(part) > limit:
                cut = limit - count
                inbox.appendleft(part[cut:])
                part = part[:cut]
            parts.append(part)
            count += len(part)
        self._unread -= count
        self._tell_window()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def is_open(self) -> bool:
        """Is it connected, and its process's?"""
        return self.is_established and not self.is_gone and not self._is_orphan

    @property
    def is_readable(self) -> bool:
        """Would ``receive`` give anything, or raise?"""
        return bool(self._unread or self._got_fin or self._error or self._was_reset)

    @property
    def is_writable(self) -> bool:
        """Would ``send`` take something, or raise? At least a third must be free, as on Linux."""
        used = self._queued + self._in_flight
        return self._was_reset or self.is_gone or used * 3 <= self._options.send_buffer_bytes * 2

    def shutdown_write(self) -> None:
        """Send no more; the peer reads the end after what was sent."""
        if not self._has_fin and not self.is_gone:
            self._has_fin = True
            self._push()

    def close(self) -> None:
        """The process lets go: with bytes unread the peer is reset, else all sent goes out."""
        self.on_readable = self.on_writable = _nothing
        self.on_connected = lambda error: None
        if self.is_gone or self._is_orphan:
            return
        self._is_orphan = True
        if not self.is_established and not self.is_server:
            self.vanish()
        elif self._unread:
            self.abort()
        else:
            self.shutdown_write()
            if not self._flight:
                self._linger()

    def reset(self) -> None:
        """Somebody in between ends the connection: a RST to this end."""
        if not self.is_gone:
            self._reset_by_peer()

    def vanish(self) -> None:
        """Forget everything: nothing is sent, nobody is told."""
        if not self.is_gone:
            self.is_gone = True
            self._queue.clear()
            self._flight.clear()
            self._queued = self._in_flight = 0
            self.stack.forget(self)

    # The network's side.

    def arrive(self, segment: Segment) -> None:
        """A segment for this connection has come."""
        flags = segment.flags
        if flags & RST:
            self._reset_by_peer()
            return
        if not self.is_established and not self._becomes_established(segment):
            return
        self._heard_at = self._timeline.now
        self._acknowledged(segment)
        if self.is_gone:
            return
        end = segment.end
        if end > segment.seq or flags & PROBE:
            self._take(segment, end)

    def _becomes_established(self, segment: Segment) -> bool:
        if segment.ack < 1:
            if self._flight and self.is_server:
                self._retransmit()  # the client has not heard our SYN: it asks again
            return False
        if not self.is_server and not segment.flags & SYN:
            return False
        self.is_established = True
        self._window = segment.window
        if self.listener is not None:
            self.listener.established(self)
        else:
            self.on_connected(None)
            self.on_connected = lambda error: None
        return True

    def _take(self, segment: Segment, end: int) -> None:
        """Take what is new of it; acknowledge it in any case."""
        expected = self._expected
        if segment.seq > expected or end <= expected:
            self._acknowledge()
            return
        data = segment.data[expected - segment.seq :] if segment.data else b""
        if data and self._is_orphan:
            self.abort()  # nobody will ever read it
            return
        self._expected = end
        self._echo = segment.stamp
        if data:
            self._judge(data)
        if segment.flags & FIN and not self.is_gone:
            self._judge(b"")
        if not self.is_gone:
            self._acknowledge()

    # Taps.

    def _judge(self, data: bytes) -> None:
        """New bytes, or the end: to the process, unless a tap has another mind."""
        if self._held is not None:
            self._held.append(data)
            return
        taps = self.link.back.taps
        if not taps:
            self._deliver(data)
            return
        run = Run(self, data)
        for tap in tuple(taps):
            verdict = tap(run)
            if isinstance(verdict, Deliver):
                if verdict.instead is not None:
                    data = run.data = verdict.instead
                continue
            if isinstance(verdict, Hold):
                if data[: verdict.after]:
                    self._deliver(data[: verdict.after])
                self._held = deque([data[verdict.after :]])
            else:
                self._kill()
            return
        self._deliver(data)

    def release(self) -> None:
        """Let go what a tap has held; what came behind it is judged in its turn."""
        if self._held is None:
            return
        held, self._held = self._held, None
        if self.is_gone:
            return
        self._deliver(held.popleft())
        for data in held:
            if not self.is_gone:
                self._judge(data)

    def _kill(self) -> None:
        self._send(self._segment(self._next, b"", RST))
        self._reset_by_peer()

    def _deliver(self, data: bytes) -> None:
        if not data:
            self._got_fin = True
        elif self._is_orphan:
            self.abort()
            return
        else:
            self._inbox.append(data)
            self._unread += len(data)
        self.on_readable()

    # Sending.

    def _push(self) -> None:
        """Send what the peer has room for."""
        if not self.is_established or self.is_gone:
            return
        options = self._options
        room = self._una + self._window - self._next
        while self._queued and room > 0:
            size = min(room, options.segment_bytes_max)
            if options.split_share and self.stack.rng.random() < options.split_share:
                size = min(size, self.stack.rng.randint(1, len(self._queue[0])))
            data = self._dequeue(size)
            room -= len(data)
            self._transmit(data, 0)
        if self._has_fin and not self._queued and not self._fin_sent:
            self._fin_sent = True
            self._transmit(b"", FIN)
        elif self._queued:
            self._arm()

    def _dequeue(self, limit: int) -> bytes:
        """The next bytes of the queue, small writes joined."""
        queue = self._queue
        data = queue.popleft()
        if len(data) > limit:
            queue.appendleft(data[limit:])
            data = data[:limit]
        elif queue and len(data) + len(queue[0]) <= limit:
            parts = [data]
            size = len(data)
            while queue and size + len(queue[0]) <= limit:
                size += len(queue[0])
                parts.append(queue.popleft())
            data = b"".join(parts)
        self._queued -= len(data)
        return data

    def _transmit(self, data: bytes, flags: int) -> None:
        """Send something that must be acknowledged."""
        segment = self._segment(self._next, data, flags)
        self._next = segment.end
        self._in_flight += len(data)
        if not self._flight:
            self._sent_at = self._progress_at = self._timeline.now
        self._flight.append(segment)
        self._send(segment)
        self._arm()

    def _segment(self, seq: int, data: bytes, flags: int) -> Segment:
        window = self._window_told = self._room()
        ack = -1 if flags & SYN and not self.is_server else self._expected
        return Segment(
            self.local,
            self.remote,
            seq,
            data,
            flags,
            ack,
            window,
            self._timeline.now,
            self._echo,
            end_of(seq, data, flags) if data or flags else seq,
        )

    def _send(self, segment: Segment) -> None:
        self._not_before = self.link.carry(segment, self._not_before)

    def _acknowledge(self) -> None:
        self._send(self._segment(self._next, b"", 0))

    def _room(self) -> int:
        room = self._options.receive_buffer_bytes - self._unread
        return room if room > 0 else 0

    def _tell_window(self) -> None:
        """The process has read: tell a peer that may be waiting for room."""
        full = self._options.receive_buffer_bytes
        if self._window_told * 4 < full and self._room() * 2 >= full and not self.is_gone:
            self._acknowledge()

    def _acknowledged(self, segment: Segment) -> None:
        self._window = segment.window
        if segment.ack > self._una:
            self._progress(segment)
        if self._queued or (self._has_fin and not self._fin_sent):
            self._push()

    def _progress(self, segment: Segment) -> None:
        """The peer has more than it had."""
        self._una = segment.ack
        flight = self._flight
        while flight and flight[0].end <= segment.ack:
            self._in_flight -= len(flight.popleft().data)
        now = self._sent_at = self._progress_at = self._timeline.now
        options = self._options
        wait_s = 2 * (now - segment.echo)
        if wait_s <= options.rto_s_min:  # as nearly always
            self._rto_s = options.rto_s_min
        else:
            self._rto_s = min(wait_s, options.rto_s_max)
        self._retries = 0
        if self._was_full and self.is_writable:
            self._was_full = False
            self.on_writable()
        if self._is_orphan and not flight and not self._queued:
            self._linger()

    # The retransmission timer: one entry of the timeline at a time, looked at when it comes.

    def _arm(self) -> None:
        if not self._timer_is_set:
            self._timer_is_set = True
            self._timeline.at(self._due(), self._timer)

    def _due(self) -> float:
        if not self.is_established:
            wait = self._options.syn_rto_s * 2**self._retries
        else:
            wait = min(self._rto_s * 2**self._retries, self._options.rto_s_max)
        due: float = self._sent_at + wait
        return due

    def _timer(self) -> None:
        self._timer_is_set = False
        if self.is_gone or not (self._flight or self._queued):
            return
        now = self._timeline.now
        if self._due() > now:
            self._arm()
        elif self._is_hopeless(now):
            self._break(errno.ETIMEDOUT)
        else:
            self._retries += 1
            self._sent_at = now
            if self._flight:
                self._retransmit()
            else:
                # The peer had no room when it was last heard: has it now?
                self._send(self._segment(self._next - 1, b"", PROBE))
            self._arm()

    def _is_hopeless(self, now: float) -> bool:
        if not self.is_established:
            return self._retries >= self._options.syn_retries
        # A peer that answers, but has no room, is waited for as long as it takes.
        since = self._progress_at if self._flight else max(self._progress_at, self._heard_at)
        return now - since >= self._options.give_up_s

    def _retransmit(self) -> None:
        for segment in self._flight:
            self._send(self._segment(segment.seq, segment.data, segment.flags))

    # The end.

    def _linger(self) -> None:
        """An orphan is remembered for a while, so that late segments of the peer are answered."""
        self._timeline.at(self._timeline.now + self._options.linger_s, self._lingered)

    def _lingered(self) -> None:
        if not self._flight and not self._queued:
            self.vanish()

    def abort(self) -> None:
        """A RST to the peer, and nothing is left of it here."""
        self._send(self._segment(self._next, b"", RST))
        self.vanish()

    def _reset_by_peer(self) -> None:
        if not self.is_established and not self.is_server:
            number = errno.ECONNREFUSED
        else:
            number = errno.EPIPE if self._got_fin else errno.ECONNRESET
        self._break(number)

    def _break(self, number: int) -> None:
        taps = tuple(self.link.back.taps) if self.is_established else ()
        self._error = OSError(number, os.strerror(number))  # becomes the subclass of its number
        self._was_reset = True
        self._held = None
        self.vanish()
        for tap in taps:
            tap(Run(self, b""))
        if self.listener is not None:
            self.listener.lost(self)
        self.on_connected(self._error)
        self.on_readable()
        self.on_writable()

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
