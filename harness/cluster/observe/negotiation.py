"""Asks brokers of any release, each in the newest version that both sides know (KIP-35)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker_impl.wire.messages.api_versions_request import ApiVersionsRequest
from broker_impl.wire.messages.apis import APIS
from harness.cluster.address import Address
from harness.cluster.observe.kafka_request import TIMEOUT_S, ask

API_VERSIONS = 18
_TAGGED_FROM = 3
"""The first version of ApiVersions that reports features (KIP-584)."""


@dataclass(frozen=True, slots=True)
class Supported:
    """What a broker answered to ApiVersions."""

    apis: Mapping[int, range]
    """The versions that it lists for each API key; keys that this project does not know, too."""
    features: Mapping[str, int] = field(default_factory=dict)
    """The level of each finalized feature; empty before Kafka 2.7 (KIP-584)."""

    def newest(self, key: int, at_most: int | None = None) -> int | None:
        """The newest version of an API that both sides know; ``None`` if they share none.

        ``at_most`` limits it to versions whose request has the fields that the caller needs.
        """
        listed = self.apis.get(key)
        if listed is None or key not in APIS:
            return None
        version = min(listed.stop, APIS[key].versions.stop) - 1
        if at_most is not None:
            version = min(version, at_most)
        return version if version >= listed.start else None


class Negotiator:
    """Remembers what each broker supports, until a request to it fails.

    A broker may be replaced by another release behind the same address, so an answer is not kept
    longer than the broker answers.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._supported: dict[Address, Supported] = {}

    async def supported(self, broker: Address) -> Supported | None:
        """What the broker supports; ``None`` if it does not answer."""
        known = self._supported.get(broker)
        if known is None:
            known = await _ask_versions(broker, self._timeout_s)
            if known is not None:
                self._supported[broker] = known
        return known

    async def ask(
        self,
        broker: Address,
        key: int,
        make: Callable[[int], Any],
        *,
        at_most: int | None = None,
        timeout_s: float | None = None,
    ) -> Any | None:
        """The response to the request that ``make`` creates for the negotiated version.

        The result is ``None`` if the broker does not answer or does not have the API;
        :meth:`supported` distinguishes these cases.
        """
        supported = await self.supported(broker)
        version = None if supported is None else supported.newest(key, at_most)
        if version is None:
            return None
        limit = self._timeout_s if timeout_s is None else timeout_s
        answer = await ask(broker, (key, version), make(version), limit)
        if answer is None:
            self._supported.pop(broker, None)
        return answer


async def _ask_versions(broker: Address, timeout_s: float) -> Supported | None:
    """Ask in version 0, which every release since 0.10 answers, then for features where possible.

    A release that does not know the requested version answers in version 0 without its list of APIs
    (before KIP-511), so starting with a newer one would save nothing.
    """
    answer = await ask(broker, (API_VERSIONS, 0), ApiVersionsRequest(), timeout_s)
    if answer is None or answer.error_code:
        return None
    supported = _supported(answer)
    version = supported.newest(API_VERSIONS)
    if version is None or version < _TAGGED_FROM:
        return supported
    request = ApiVersionsRequest(client_software_name="faultline", client_software_version="0.1.0")
    newer = await ask(broker, (API_VERSIONS, version), request, timeout_s)
    return supported if newer is None or newer.error_code else _supported(newer)


def _supported(answer: Any) -> Supported:
    return Supported(
        {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys},
        {row.name: row.max_version_level for row in answer.finalized_features},
    )
