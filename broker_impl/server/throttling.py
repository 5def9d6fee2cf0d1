"""Client quotas on one connection: what its requests use, and for how long it is muted (KIP-219).

A response is sent at once, with the throttle time; the broker then handles no request of the
connection until that time is over. Produce is charged with the size of the request, and Fetch with
that of the response; every request is charged with the time that its handler takes. Requests of
other brokers are not charged.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from broker_impl.api.quotas import entities
from broker_impl.api.quotas.limits import ClientQuotas, Kind
from broker_impl.api.registry import Api
from broker_impl.wire.messages import response_module

ANONYMOUS: Final = "ANONYMOUS"
"""The user of a connection that is not authenticated."""
_PRODUCE: Final = 0
_FETCH: Final = 1
_MARKERS: Final = 27
_CONSUMER: Final = -1
_PERCENT: Final = 100


@dataclass(slots=True)
class Charge:
    """What a request is charged with once it is answered."""

    api_key: int
    version: int
    client_id: str
    request_bytes: int
    begun_s: float
    busy_s: float = 0.0


def _is_for_brokers(row: Api, version: int) -> bool:
    is_private = row.private_from is not None and version >= row.private_from
    return row.between_brokers or is_private or row.key == _MARKERS


class Throttle:
    """The quotas of one connection's client."""

    def __init__(
        self,
        quotas: ClientQuotas,
        loop: asyncio.AbstractEventLoop,
        resume: Callable[[], None],
        *,
        is_exempt: bool = False,
    ) -> None:
        """resume: called at the end of a throttle time. is_exempt: only brokers connect here."""
        self._is_exempt = is_exempt
        self._quotas = quotas
        self._loop = loop
        self._resume = resume
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.user = ANONYMOUS

    @property
    def is_muted(self) -> bool:
        """Whether requests wait for the end of a throttle time."""
        return self._timer is not None

    def charge(self, row: Api, version: int, client_id: str | None, size: int) -> Charge | None:
        """Begin to charge a request; None if no client has a quota, or a broker sent it."""
        if not self._quotas.is_active or self._is_exempt or _is_for_brokers(row, version):
            return None
        name = entities.encoded(client_id or "")
        return Charge(row.key, version, name, size, self._loop.time())

    def of_client(self, charge: Charge | None, message: Any) -> Charge | None:
        """Return the charge, None for the fetch of a follower; the most of a fetch is limited.

        A consumer cannot fetch more at once than its quota for all windows.
        """
        if charge is None or charge.api_key != _FETCH:
            return charge
        if message.replica_id != _CONSUMER:
            return None
        most = self._quotas.window_bytes(Kind.CONSUMED, self._encoded_user, charge.client_id)
        if most is not None:
            message.max_bytes = min(message.max_bytes, most)
        return charge

    def handled(self, charge: Charge | None) -> None:
        """Note that the handler of a request has returned, or has begun to wait."""
        if charge is not None:
            charge.busy_s += self._loop.time() - charge.begun_s

    def settle(self, charge: Charge | None, answer: Any) -> None:
        """Charge a request that is answered: write the throttle time into the response, and mute.

        ``answer`` is None for a Produce request with acks=0, which has no response.
        """
        if charge is None:
            return
        delay_ms = max(self._used(charge, answer), self._busy(charge))
        if delay_ms:
            if answer is not None and hasattr(answer, "throttle_time_ms"):
                answer.throttle_time_ms = max(answer.throttle_time_ms, delay_ms)
            self._mute(delay_ms / 1000)

    def close(self) -> None:
        """Forget the throttle time; the connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _encoded_user(self) -> str:
        return entities.encoded(self.user)

    def _used(self, charge: Charge, answer: Any) -> int:
        if charge.api_key == _PRODUCE:
            return self._record(Kind.PRODUCED, charge, charge.request_bytes)
        if charge.api_key == _FETCH:
            body = response_module(_FETCH).encode(answer, charge.version)
            return self._record(Kind.CONSUMED, charge, sum(map(len, body)))
        return 0

    def _busy(self, charge: Charge) -> int:
        return self._record(Kind.REQUESTS, charge, charge.busy_s * _PERCENT)

    def _record(self, kind: Kind, charge: Charge, value: float) -> int:
        now_ms = self._loop.time() * 1000
        return self._quotas.record(kind, self._encoded_user, charge.client_id, value, now_ms)

    def _mute(self, delay_s: float) -> None:
        until = self._loop.time() + delay_s
        if self._timer is not None:
            if until <= self._until:
                return
            self._timer.cancel()
        self._until = until
        self._timer = self._loop.call_later(delay_s, self._unmute)

    def _unmute(self) -> None:
        self._timer = None
        self._resume()
