"""A transactional producer that does what the producers of aiokafka and librdkafka no longer do.

It gives up a batch that is not answered in time and aborts at once, in the same epoch, while the
batch may still be in flight, as clients did before they could request another epoch (KIP-360). And
a new producer id begins with any given sequence number, so that a test need not write two billion
records to reach the last one.

It uses the connections of aiokafka's client; aiokafka's consumer reads for its process. As with the
other clients, a process whose request was not answered never acts again. A batch that was certainly
rejected has used up no sequence number.

It uses version 2 of the transaction protocol where the cluster has finalized it (KIP-890), which
aiokafka and librdkafka do not.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError, NoError, for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from workloads.client import aio_errors, outcome, payload, txn_version
from workloads.client.aio_closing import stop_client
from workloads.client.aio_errors import name_of
from workloads.client.aio_txn import TransactionalAioClient
from workloads.client.base_client import Report
from workloads.client.common import Place, Settings, split, to_commit
from workloads.client.transaction import INIT_TIMEOUT_S, Failure

BACKOFF_S = 0.05
"""The pause before a request is sent again."""
SEQUENCES = 2**31
_ASK_AGAIN = frozenset(map(for_code, (3, 14, 15, 16, 51)))
"""The errors after which a coordinator's request is repeated.

They are: unknown partition; a coordinator that is loading, not available, or not the coordinator;
and CONCURRENT_TRANSACTIONS.
"""
_SEND_AGAIN = frozenset(map(for_code, (3, 5, 6, 7, 19, 20, 51)))
"""The errors after which a batch is sent again.

They are: unknown partition, leader not available, not the leader, timed out, too few in-sync
replicas before or after the append, and, with version 2 of the protocol, CONCURRENT_TRANSACTIONS:
the coordinator has not yet completed the transaction before. If the batch was appended
nevertheless, the leader detects the duplicate by its sequence number.
"""
_IN_DOUBT = frozenset(map(for_code, (7, 20)))
"""Those of them that mean that the batch was appended."""


class RawClient(TransactionalAioClient):
    """A process that reads with aiokafka and writes with a :class:`RawWriter`."""

    def __init__(
        self, settings: Settings, *, asks_again: bool = False, first_sequence: int = 0
    ) -> None:
        """``first_sequence``: where the sequence numbers of a new producer id start."""
        super().__init__(settings, asks_again=asks_again)
        self._asks_again = asks_again
        self._first_sequence = first_sequence

    def _make_producer(self, transactional_id: str) -> "RawWriter":
        request_ms = self._arguments["request_timeout_ms"]
        return RawWriter(
            AIOKafkaClient(**self._common, request_timeout_ms=request_ms),
            transactional_id,
            timeout_ms=self._arguments["transaction_timeout_ms"],
            delivery_s=self._delivery_s,
            end_s=self._end_s,
            asks_again=self._asks_again,
            first_sequence=self._first_sequence,
            form=self._form,
        )


class RawWriter:
    """The module's producer; see also :class:`~workloads.client.transaction.Producer`."""

    def __init__(
        self,
        client: AIOKafkaClient,
        transactional_id: str,
        *,
        timeout_ms: int,
        delivery_s: float,
        end_s: float,
        asks_again: bool,
        first_sequence: int,
        form: payload.Form,
    ) -> None:
        self._client = client
        self._name = transactional_id
        self._timeout_ms = timeout_ms
        self._delivery_s = delivery_s
        self._end_s = end_s
        self._asks_again = asks_again
        self._first_sequence = first_sequence
        self._form = form
        self._next: dict[str, int] = {}
        """The sequence number of the next record, by partition."""
        self._added: set[str] = set()
        """The partitions of the transaction."""
        self._has_offsets = False
        self._coordinators: dict[tuple[CoordinationType, str], int] = {}
        self._is_second = False
        """Has the cluster finalized version 2 of the transaction protocol?"""
        self._under_way: list[asyncio.Future[tuple[type[KafkaError], int]]] = []
        """The batches of the transaction, also those that were given up."""
        self.identity: list[int] | None = None
        self.reusable = True

    async def init(self) -> tuple[outcome.Outcome, str | None]:
        """Get a producer id and an epoch; return the outcome and the name of the error."""
        request = InitProducerIdRequest(self._name, self._timeout_ms)
        try:
            async with asyncio.timeout(INIT_TIMEOUT_S):
                await self._client.bootstrap()
                self._is_second = await self._has_second()
                answer = await self._ask(request, lambda response: [response.error_code])
        except KafkaConnectionError as error:
            return "fail", name_of(error)  # it has found no broker
        except (KafkaError, TimeoutError) as error:
            return "info", name_of(error)
        except Failure as failure:
            return "info", failure.name
        self.identity = [answer.producer_id, answer.producer_epoch]
        return "ok", None

    async def _has_second(self) -> bool:
        try:
            answer = await self._ask(
                txn_version.FeaturesRequest(), lambda response: [response.error_code]
            )
        except NotImplementedError:  # no broker of this release has it: nothing was sent
            return False
        return txn_version.has_second(answer)

    async def begin(self) -> None:
        self._added.clear()
        self._under_way.clear()
        self._has_offsets = False

    async def send(self, records: list[tuple[str, int]]) -> list[Report]:
        """Send one batch for each partition, all at once."""
        rows: dict[str, list[int]] = {}
        for key, value in records:
            rows.setdefault(key, []).append(value)
        try:
            async with asyncio.timeout(self._delivery_s):
                await self._add(rows)
        except (Failure, TimeoutError) as error:
            self.reusable = False
            return [Report("fail", None, str(error) or name_of(error))] * len(records)
        batch_reports = await asyncio.gather(
            *(self._produce(key, values) for key, values in rows.items())
        )
        reports = dict(zip(rows, map(iter, batch_reports), strict=True))
        return [next(reports[key]) for key, _ in records]

    async def send_offsets(self, offsets: Mapping[str, Place], group: str) -> None:
        assert self.identity is not None
        topics: dict[str, list[tuple[int, int, str]]] = {}
        for key, place in offsets.items():
            topic, partition = split(key)
            topics.setdefault(topic, []).append((partition, *to_commit(place)))
        await self._step(
            AddOffsetsToTxnRequest(self._name, *self.identity, group),
            lambda response: [response.error_code],
        )
        self._has_offsets = True
        await self._step(
            TxnOffsetCommitRequest(self._name, group, *self.identity, list(topics.items())),
            lambda response: [code for _, partitions in response.errors for _, code in partitions],
            (CoordinationType.GROUP, group),
        )

    async def commit(self) -> None:
        await self._end(is_commit=True)

    async def abort(self) -> None:
        await self._end(is_commit=False)

    async def close(self) -> None:
        """Close when the last request is answered, or its connection is given up."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await stop_client(self._client.close, self._client.close)

    async def _end(self, *, is_commit: bool) -> None:
        assert self.identity is not None
        if not self._added and not self._has_offsets:
            return
        make: Any = txn_version.EndTxnRequest if self._is_second else EndTxnRequest
        request = make(self._name, *self.identity, is_commit)
        answer = await self._step(request, lambda response: [response.error_code])
        if self._is_second:  # another epoch, whose sequence numbers start at 0
            self.identity = [answer.producer_id, answer.producer_epoch]
            self._next.clear()

    async def _add(self, keys: Iterable[str]) -> None:
        """Add these partitions to the transaction, unless their leaders do so."""
        assert self.identity is not None
        if self._is_second:
            self._added.update(keys)
            return
        topics: dict[str, list[int]] = {}
        for key in keys:
            if key not in self._added:
                topic, partition = split(key)
                topics.setdefault(topic, []).append(partition)
        if topics:
            await self._ask(
                AddPartitionsToTxnRequest(self._name, *self.identity, list(topics.items())),
                lambda response: [
                    code for _, partitions in response.errors for _, code in partitions
                ],
            )
            self._added.update(keys)

    async def _step(
        self,
        request: Any,
        codes: Callable[[Any], list[int]],
        role: tuple[CoordinationType, str] | None = None,
    ) -> Any:
        try:
            async with asyncio.timeout(self._end_s):
                return await self._ask(request, codes, role)
        except TimeoutError as error:
            raise Failure(name_of(error), can_abort=False) from None

    async def _ask(
        self,
        request: Any,
        codes: Callable[[Any], list[int]],
        role: tuple[CoordinationType, str] | None = None,
    ) -> Any:
        """Return a coordinator's response, after as many requests as necessary.

        Raises :class:`Failure` if the coordinator rejects the request or does not answer.
        """
        role = role or (CoordinationType.TRANSACTION, self._name)
        while True:
            node = await self._coordinator(*role)
            try:
                answer = await self._client.send(node, request, group=ConnectionGroup.COORDINATION)
            except KafkaError as error:
                in_doubt = not isinstance(error, NodeNotReadyError)
                if in_doubt and self._must_not_be_late(request):
                    raise Failure(name_of(error), can_abort=False) from None
            else:
                errors = [error for error in map(for_code, codes(answer)) if error is not NoError]
                if not errors:
                    return answer
                if errors[0] not in _ASK_AGAIN:
                    raise Failure(errors[0].__name__, can_abort=False)
            self._coordinators.pop(role, None)
            await asyncio.sleep(BACKOFF_S)

    def _must_not_be_late(self, request: Any) -> bool:
        """Would the request do harm if it arrived after the next one?

        An EndTxn would end the next transaction, unless the client repeats it anyway; of several
        TxnOffsetCommits, the last one takes effect.
        """
        if isinstance(request, EndTxnRequest | txn_version.EndTxnRequest):
            return not self._asks_again
        return isinstance(request, TxnOffsetCommitRequest)

    async def _coordinator(self, kind: CoordinationType, name: str) -> int:
        """Return the last known coordinator, or look it up at any broker, for as long as needed."""
        while (kind, name) not in self._coordinators:
            try:
                found = await self._client.coordinator_lookup(kind, name)
                self._coordinators[kind, name] = int(found)
            except KafkaError:
                await self._client.force_metadata_update()
                await asyncio.sleep(BACKOFF_S)
        return self._coordinators[kind, name]

    async def _produce(self, key: str, values: list[int]) -> list[Report]:
        """Send a batch, and repeat it only after responses that permit it; return the reports."""
        sequence, data = self._batch(key, values)
        is_sent = False
        try:
            async with asyncio.timeout(self._delivery_s):
                while True:
                    leader = await self._leader(key)
                    sending = asyncio.ensure_future(self._send(leader, key, data))
                    self._under_way.append(sending)
                    is_sent = True
                    error, offset = await asyncio.shield(sending)
                    if error not in _SEND_AGAIN:
                        break
                    self.reusable = self.reusable and error not in _IN_DOUBT
                    self._client.force_metadata_update()
                    await asyncio.sleep(BACKOFF_S)
        except (KafkaError, TimeoutError) as failed:
            self.reusable = self.reusable and not is_sent
            return [Report("info" if is_sent else "fail", None, name_of(failed))] * len(values)
        if error is NoError:
            self._next[key] = (sequence + len(values)) % SEQUENCES
            return [Report("ok", offset + at) for at in range(len(values))]
        return [Report(aio_errors.of_send(error()), None, error.__name__)] * len(values)

    def _batch(self, key: str, values: list[int]) -> tuple[int, bytes]:
        """Return the first sequence number of the batch, and the batch."""
        assert self.identity is not None
        producer_id, epoch = self.identity
        sequence = self._next.get(key, 0 if epoch else self._first_sequence)
        builder = DefaultRecordBatchBuilder(2, 0, 1, producer_id, epoch, sequence, 2**20)
        for at, value in enumerate(values):
            record_key, record_value, headers = self._form.encode(key, value)
            builder.append(at, None, record_key, record_value, headers or [])
        return sequence, bytes(builder.build())

    async def _send(self, leader: int, key: str, data: bytes) -> tuple[type[KafkaError], int]:
        """Send a batch; return its error and its offset."""
        topic, partition = split(key)
        timeout_ms = int(self._delivery_s * 1000)
        if self._is_second:
            second = txn_version.ProduceRequest(self._name, timeout_ms, topic, partition, data)
            answer = await self._client.send(leader, second)
        else:
            request = ProduceRequest(self._name, -1, timeout_ms, [(topic, [(partition, data)])])
            answer = await self._client.send(leader, request)
        ((_, ((_, code, offset, *_),), *_),) = answer.topics
        return for_code(code), int(offset)

    async def _leader(self, key: str) -> int:
        """Return the leader, once there is a connection to it."""
        topic, partition = split(key)
        while True:
            await self._client._wait_on_metadata(topic)
            leader = self._client.cluster.leader_for_partition(TopicPartition(topic, partition))
            if leader is not None and leader >= 0 and await self._client.ready(leader):
                return int(leader)
            await self._client.force_metadata_update()
            await asyncio.sleep(BACKOFF_S)
