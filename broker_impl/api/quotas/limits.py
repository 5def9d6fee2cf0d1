"""The quotas of all clients, and what their requests have used of them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from broker_impl.api.quotas import entities, rate
from broker_impl.api.quotas.entities import Entity
from broker_impl.api.quotas.rate import Rate


class Kind(StrEnum):
    """What a quota limits, under Kafka's names."""

    PRODUCED = "producer_byte_rate"
    CONSUMED = "consumer_byte_rate"
    REQUESTS = "request_percentage"


MUTATIONS: Final = "controller_mutation_rate"
"""A quota that is stored and described, and that this broker does not enforce (KIP-599)."""
_IDLE_MS: Final = 3_600_000.0
"""Kafka's time after which the rate of a silent client is forgotten."""


class ClientQuotas:
    """Quotas by entity, and the rates of clients that have one.

    samples, window_ms: ``quota.window.num`` and ``quota.window.size.seconds``. defaults: the quotas
    of client ids that have none otherwise (``quota.producer.default``).
    """

    def __init__(
        self, samples: int, window_ms: float, defaults: Mapping[Kind, float] | None = None
    ) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._defaults = dict(defaults or {})
        self._quotas: dict[Entity, dict[str, float]] = {}
        self._rates: dict[tuple[Kind, Entity], Rate] = {}
        self._tidied_ms = 0.0

    @property
    def is_active(self) -> bool:
        """Whether any client has a quota."""
        return bool(self._quotas or self._defaults)

    def replace(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """Set all quotas."""
        self._quotas = {entity: dict(values) for entity, values in quotas.items() if values}

    def set(self, entity: Entity, values: Mapping[str, float]) -> None:
        """Set the quotas of one entity; without any, those of other entities apply."""
        self._quotas.pop(entity, None)
        if values:
            self._quotas[entity] = dict(values)

    def bound(self, kind: Kind, user: str, client_id: str) -> tuple[float, Entity] | None:
        """Return a client's quota and the entity whose requests share it; None if it has none."""
        for entity, sharing in entities.candidates(user, client_id):
            value = self._quotas.get(entity, {}).get(kind)
            if value is not None:
                return value, sharing
        default = self._defaults.get(kind)
        return None if default is None else (default, Entity(None, client_id))

    def window_bytes(self, kind: Kind, user: str, client_id: str) -> int | None:
        """Return how much a client may use at once without being throttled for it; None: any."""
        found = self.bound(kind, user, client_id)
        if found is None:
            return None
        return int(found[0] * (self._samples - 1) * self._window_ms / 1000)

    def record(self, kind: Kind, user: str, client_id: str, value: float, now_ms: float) -> int:
        """Record what a request has used; return for how many milliseconds to throttle its client.

        Time of requests throttles for one window at most, as in Kafka.
        """
        found = self.bound(kind, user, client_id)
        if found is None:
            return 0
        bound, sharing = found
        used = self._rates.get((kind, sharing))
        if used is None:
            self._tidy(now_ms)
            used = self._rates[kind, sharing] = Rate(self._samples, self._window_ms)
        used.record(value, now_ms)
        measured, elapsed_ms = used.measure(now_ms)
        delay = rate.throttle_ms(measured, bound, elapsed_ms)
        return min(delay, int(self._window_ms)) if kind is Kind.REQUESTS else delay

    def _tidy(self, now_ms: float) -> None:
        """Forget the rates of clients that have been silent for an hour."""
        if now_ms - self._tidied_ms >= _IDLE_MS:
            self._tidied_ms = now_ms
            self._rates = {
                key: each
                for key, each in self._rates.items()
                if now_ms - each.last_recorded_ms() < _IDLE_MS
            }
