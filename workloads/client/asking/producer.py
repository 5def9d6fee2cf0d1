"""A transactional producer that sends single requests, as the stories of askers need it."""

import asyncio
import random
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import UnknownError, for_code
from aiokafka.protocol.transaction import EndTxnRequest

from workloads.client.asking.txn_requests import InitRequest

TIMEOUT_MS: Final = 4000
TIMEOUTS: Final = 10
"""Producers ask for so many different timeouts, which are a little longer."""
BACKOFF_S: Final = 0.1
ATTEMPTS: Final = 10
CONCURRENT: Final = 51


class Producer:
    """The producer of one process, with one transactional id at a time."""

    def __init__(self, client: AIOKafkaClient, rng: random.Random, name: str) -> None:
        """``name``: its transactional id."""
        self._client = client
        self._rng = rng
        self._base = self._name = name
        self._names = 1
        """The number of transactional ids that it has used."""
        self._inits = 0
        self._said: list[str] = []
        """What happened in the current story, as text."""

    def _note(self, what: str, code: int) -> int:
        kind = for_code(code)
        self._said.append(f"{what}: {f'error {code}' if kind is UnknownError else kind.__name__}")
        return code

    async def _send(self, request: Any) -> Any:
        kind = CoordinationType.TRANSACTION
        node = await self._client.coordinator_lookup(kind, self._name)
        return await self._client.send(node, request, group=ConnectionGroup.COORDINATION)

    async def _when_free(
        self, request: Any, code_of: Callable[[Any], int] = attrgetter("error_code")
    ) -> Any:
        """Send a request again while the former transaction ends; return the last answer."""
        for _ in range(ATTEMPTS):
            answer = await self._send(request)
            if code_of(answer) != CONCURRENT:
                break
            await asyncio.sleep(BACKOFF_S)
        return answer

    def _rename(self) -> None:
        """Go on with another transactional id."""
        self._name, self._names = f"{self._base}-{self._names}", self._names + 1

    async def _init(self, producer_id: int = -1, epoch: int = -1) -> tuple[int, int] | None:
        self._inits += 1
        timeout_ms = TIMEOUT_MS + self._inits % TIMEOUTS
        answer = await self._when_free(InitRequest(self._name, timeout_ms, producer_id, epoch))
        if answer.error_code == CONCURRENT:
            # A batch with a later epoch, which a log accepts, keeps the marker from being written.
            self._rename()
        if self._note(f"init {answer.producer_epoch}", answer.error_code):
            return None
        return answer.producer_id, answer.producer_epoch

    async def _end(self, who: tuple[int, int], *, commit: bool) -> int:
        answer = await self._when_free(EndTxnRequest(self._name, *who, commit))
        return self._note("commit" if commit else "abort", answer.error_code)
