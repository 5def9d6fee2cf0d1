"""One end of a TCP connection, as the kernel keeps it; it may outlive its process.

A process passes bytes to ``send`` and takes them from ``receive``; the rest follows Linux. Segments
arrive in order or not at all, so recovery is simple: when the timer fires, everything from the
first unacknowledged segment on is sent again.
"""

import errno
import os
from collections import deque
from collections.abc import Callable

from harness.simulation.byte_queue import ByteQueue
from harness.simulation.interceptors import Deliver, Hold, Run
from harness.simulation.kernel import SocketListener, SocketStack
from harness.simulation.network import Link
from harness.simulation.retransmission import Retransmission
from harness.simulation.segment import FIN, PROBE, RST, SYN, Address, Segment, end_of


def _nothing() -> None:
    """Do nothing: the default callback."""


class Socket:
    """One host's end of a connection.

    ``on_readable`` is called when bytes, the end of the stream or an error wait to be received;
    ``on_writable`` when there is room to send again, or an error; ``on_connected`` once, with the
    outcome of a connect.
    """

    def __init__(
        self,
        stack: "SocketStack[Socket]",
        link: Link,
        local: Address,
        remote: Address,
        *,
        owner: object,
        listener: "SocketListener[Socket] | None" = None,
    ) -> None:
        """``owner``: the process; ``listener``: at the server's end, the listener connected to."""
        self.stack = stack
        self.owner = owner
        self.local = local
        self.remote = remote
        self.listener = listener
        """The listener that holds the socket until the process accepts it."""
        self.is_server = listener is not None
        self.is_established = False
        self.is_gone = False
        """True once the kernel has discarded the socket."""
        self.on_readable: Callable[[], None] = _nothing
        self.on_writable: Callable[[], None] = _nothing
        self.on_connected: Callable[[OSError | None], None] = lambda error: None
        self._not_before = 0.0
        """When the last segment that was sent arrives; later segments do not overtake it."""
        self.link = link
        """The link to the peer's host."""
        self._options = stack.options
        self._timeline = stack.timeline
        self._error: OSError | None = None
        self._was_reset = False
        self._is_orphan = False
        """True once the process has closed the socket, or ended."""
        # Sending.
        self._queue = ByteQueue()
        self._flight: deque[Segment] = deque()
        self._in_flight = 0
        self._retransmission = Retransmission(self._options, self._timeline.now)
        self._next = 0
        self._una = 0
        self._window = 0
        self._has_fin = False
        """True once the process sends no more; a FIN follows the queued bytes."""
        self._fin_sent = False
        self._was_full = False
        self._timer_is_set = False
        # Receiving.
        self._inbox = ByteQueue()
        self._expected = 0
        self._got_fin = False
        self._advertised_window = 0
        self._echo = 0.0
        self._held: deque[bytes] | None = None
        """Bytes that a tap holds, and all that arrived later; ``b""`` is the end of the stream."""

    # For the process.

    def open(self, syn: Segment | None = None) -> None:
        """Send a SYN: the client's, or the server's answer to ``syn``."""
        if syn is not None:
            self._expected = syn.end
            self._echo = syn.stamp
        self._transmit(b"", SYN)

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Take as many bytes as there is room for, and return their number.

        Raises:
            OSError: the connection is broken, or the process has shut down its sending side.
        """
        self._raise_error()
        if self._has_fin or self.is_gone:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        room = self._options.send_buffer_bytes - self._queue.count - self._in_flight
        count = min(room, len(data))
        if count < len(data):
            self._was_full = True
        if count <= 0:
            return 0
        self._queue.append(bytes(data[:count]))
        self._push()
        return count

    def receive(self, limit: int) -> bytes | None:
        """Return bytes, ``b""`` at the end of the stream, or ``None`` when nothing has arrived.

        Raises:
            OSError: the connection is broken, and the bytes from before that have been read.
        """
        if not self._inbox.count:
            if self._got_fin:
                return b""
            self._raise_error()
            return b"" if self._was_reset else None
        data = self._inbox.take(limit)
        self._advertise_window()
        return data

    @property
    def is_open(self) -> bool:
        """Return whether the socket is connected and not closed by its process."""
        return self.is_established and not self.is_gone and not self._is_orphan

    @property
    def is_readable(self) -> bool:
        """Return whether ``receive`` would return something other than ``None``, or raise."""
        return bool(self._inbox.count or self._got_fin or self._error or self._was_reset)

    @property
    def is_writable(self) -> bool:
        """Return whether ``send`` would take bytes or raise; a third must be free, as on Linux."""
        used = self._queue.count + self._in_flight
        return self._was_reset or self.is_gone or used * 3 <= self._options.send_buffer_bytes * 2

    def shutdown_write(self) -> None:
        """Send no more: the peer reads the end of the stream after the bytes sent before."""
        if not self._has_fin and not self.is_gone:
            self._has_fin = True
            self._push()

    def close(self) -> None:
        """Close for the process: reset the peer if bytes are unread, else send what is queued."""
        self.on_readable = self.on_writable = _nothing
        self.on_connected = lambda error: None
        if self.is_gone or self._is_orphan:
            return
        self._is_orphan = True
        if not self.is_established and not self.is_server:
            self.vanish()
        elif self._inbox.count:
            self.abort()
        else:
            self.shutdown_write()
            if not self._flight:
                self._linger()

    def reset(self) -> None:
        """Receive a RST that a third party sent to end the connection."""
        if not self.is_gone:
            self._reset_by_peer()

    def vanish(self) -> None:
        """Discard all state without sending anything or calling a callback."""
        if not self.is_gone:
            self.is_gone = True
            self._queue.clear()
            self._flight.clear()
            self._in_flight = 0
            self.stack.forget(self)

    # For the network.

    def arrive(self, segment: Segment) -> None:
        """Process a segment for this connection."""
        flags = segment.flags
        if flags & RST:
            self._reset_by_peer()
            return
        if not self.is_established and not self._becomes_established(segment):
            return
        self._retransmission.heard_at = self._timeline.now
        self._acknowledged(segment)
        if self.is_gone:
            return
        end = segment.end
        if end > segment.seq or flags & PROBE:
            self._take(segment, end)

    def _becomes_established(self, segment: Segment) -> bool:
        if segment.ack < 1:
            if self._flight and self.is_server:
                self._retransmit()  # the client has not received our SYN: it asks again
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
        """Take the new bytes of a segment; acknowledge it in any case."""
        expected = self._expected
        if segment.seq > expected or end <= expected:
            self._acknowledge()
            return
        data = segment.data[expected - segment.seq :] if segment.data else b""
        if data and self._is_orphan:
            self.abort()  # no process will read it
            return
        self._expected = end
        self._echo = segment.stamp
        if data:
            if not self.is_server:
                self.link.show(Run(self, data))
            self._judge(data)
        if segment.flags & FIN and not self.is_gone:
            self._judge(b"")
        if not self.is_gone:
            self._acknowledge()

    # Taps.

    def _judge(self, data: bytes) -> None:
        """Pass new bytes, or the end of the stream, to the taps; deliver them unless held."""
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
                    if not data:
                        return
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
        """Deliver what a tap has held; what arrived after it passes through the taps one by one."""
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
        if self.is_server:
            self.link.show(Run(self, data))
        if not data:
            self._got_fin = True
        elif self._is_orphan:
            self.abort()
            return
        else:
            self._inbox.append(data)
        self.on_readable()

    # Sending.

    def _push(self) -> None:
        """Send as much as the peer has room for."""
        if not self.is_established or self.is_gone:
            return
        options = self._options
        room = self._una + self._window - self._next
        while self._queue.count and room > 0:
            size = min(room, options.segment_bytes_max)
            if options.split_share and self.stack.rng.random() < options.split_share:
                size = min(size, self.stack.rng.randint(1, self._queue.first_bytes))
            data = self._queue.take_parts(size)
            room -= len(data)
            self._transmit(data, 0)
        if self._has_fin and not self._queue.count and not self._fin_sent:
            self._fin_sent = True
            self._transmit(b"", FIN)
        elif self._queue.count:
            self._arm()

    def _transmit(self, data: bytes, flags: int) -> None:
        """Send a segment that must be acknowledged."""
        segment = self._segment(self._next, data, flags)
        self._next = segment.end
        self._in_flight += len(data)
        if not self._flight:
            self._retransmission.begin(self._timeline.now)
        self._flight.append(segment)
        self._send(segment)
        self._arm()

    def _segment(self, seq: int, data: bytes, flags: int) -> Segment:
        window = self._advertised_window = self._room()
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
        room = self._options.receive_buffer_bytes - self._inbox.count
        return room if room > 0 else 0

    def _advertise_window(self) -> None:
        """Announce the window to a peer that may wait for room, since the process has read."""
        full = self._options.receive_buffer_bytes
        if self._advertised_window * 4 < full and self._room() * 2 >= full and not self.is_gone:
            self._acknowledge()

    def _acknowledged(self, segment: Segment) -> None:
        self._window = segment.window
        if segment.ack > self._una:
            self._progress(segment)
        if self._queue.count or (self._has_fin and not self._fin_sent):
            self._push()

    def _progress(self, segment: Segment) -> None:
        """Remove acknowledged segments from the flight, because the peer has acknowledged more."""
        self._una = segment.ack
        flight = self._flight
        while flight and flight[0].end <= segment.ack:
            self._in_flight -= len(flight.popleft().data)
        self._retransmission.acknowledged(self._timeline.now, segment.echo)
        if self._was_full and self.is_writable:
            self._was_full = False
            self.on_writable()
        if self._is_orphan and not flight and not self._queue.count:
            self._linger()

    # The retransmission timer: one entry of the timeline at a time, checked when it fires.

    def _arm(self) -> None:
        if not self._timer_is_set:
            self._timer_is_set = True
            due = self._retransmission.due(is_established=self.is_established)
            self._timeline.at(due, self._timer)

    def _timer(self) -> None:
        self._timer_is_set = False
        if self.is_gone or not (self._flight or self._queue.count):
            return
        now = self._timeline.now
        established, times = self.is_established, self._retransmission
        if times.due(is_established=established) > now:
            self._arm()
        elif times.is_hopeless(now, is_established=established, has_flight=bool(self._flight)):
            self._break(errno.ETIMEDOUT)
        else:
            times.repeat(now)
            if self._flight:
                self._retransmit()
            else:
                # The peer had no room when it was last heard from: probe whether it has room now.
                self._send(self._segment(self._next - 1, b"", PROBE))
            self._arm()

    def _retransmit(self) -> None:
        for segment in self._flight:
            self._send(self._segment(segment.seq, segment.data, segment.flags))

    # The end.

    def _linger(self) -> None:
        """Keep a closed socket for a while, so that late segments of the peer are answered."""
        self._timeline.at(self._timeline.now + self._options.linger_s, self._lingered)

    def _lingered(self) -> None:
        if not self._flight and not self._queue.count:
            self.vanish()

    def abort(self) -> None:
        """Send a RST to the peer and discard the socket."""
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
        if self.is_server:
            self.link.show(Run(self, b""))
        if self.listener is not None:
            self.listener.lost(self)
        self.on_connected(self._error)
        self.on_readable()
        self.on_writable()

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
