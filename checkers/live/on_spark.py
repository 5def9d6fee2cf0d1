"""Judges batches on Spark: a stream of batches, and a state for each partition.

Executors read and cut each batch, and judge its parts with the states of their partitions, which
Spark keeps on disk (``transformWithState``). The driver gets what was found, and no event. As in
:mod:`checkers.distributed.on_spark`, an executor imports this module before it can import others.
"""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from checkers import shipping

if TYPE_CHECKING:
    from checkers.expectations import Contract
    from checkers.live.partition import Looked
    from model.batch import Batch

OnLooked = Callable[["Looked"], None]
"""Called with what each micro-batch has shown, on a thread of the session."""

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}
_TRIGGER = "1 second"
_AGE = "1h"
"""How long Spark remembers the names of batches that it has judged."""
_PART = pa.schema([("key", pa.string()), ("number", pa.int64()), ("data", pa.binary())])
_PARTS = "key string, number long, data binary"
_LOOKED = "key string, data binary"


class OnSpark:
    """A stream in a session; its files are in a folder that all executors can use."""

    def __init__(self, session: Any, folder: Path, on_looked: OnLooked) -> None:
        self._session, self._on_looked = session, on_looked
        self._batches, self._checkpoint = folder / "batches", folder / "checkpoint"
        self._batches.mkdir(parents=True)
        self._query: Any = None

    def submit(self, batch: "Batch", contract: "Contract") -> None:
        """Add a batch to the stream, which may not have been started yet."""
        import msgspec  # executors may have to unpack it first

        name = f"{batch.number:09}"
        written = self._batches.parent / name
        written.write_bytes(msgspec.json.encode((batch, contract)) + b"\n")
        written.rename(self._batches / name)

    def start(self) -> None:
        """Start the stream. What was submitted before is judged first."""
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)
        lines = (
            self._session.readStream.format("text")
            .option("cleanSource", "delete")
            .option("maxFileAge", _AGE)
            .load(str(self._batches))
        )
        looked = (
            lines.mapInArrow(_cut, _PARTS)
            .groupBy("key")
            .transformWithState(
                statefulProcessor=Judge(),
                outputStructType=_LOOKED,
                outputMode="Append",
                timeMode="None",
            )
        )
        self._query = (
            looked.writeStream.foreachBatch(self._received)
            .option("checkpointLocation", str(self._checkpoint))
            .outputMode("append")
            .trigger(processingTime=_TRIGGER)
            .start()
        )

    def error(self) -> str | None:
        """Return why the stream has ended; ``None`` if it has not."""
        if self._query is None or self._query.isActive:
            return None
        error = self._query.exception()
        return "the stream was stopped" if error is None else str(error).splitlines()[0]

    def stop(self) -> None:
        """End the stream; batches that were not judged yet are left."""
        if self._query is not None:
            self._query.stop()

    def _received(self, rows: Any, number: int) -> None:
        from checkers.live.here import joined

        self._on_looked(joined(pickle.loads(row["data"]) for row in rows.collect()))


def _cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    shipping.unpack()
    import msgspec

    from checkers.expectations import Contract
    from checkers.live import batches as batches_
    from model.batch import Batch

    for lines in batches:
        for line in lines.column(0).to_pylist():
            batch, contract = msgspec.json.decode(line, type=tuple[Batch, Contract])
            for key, part in batches_.cut(batch):
                row = [[key], [batch.number], [pickle.dumps((part, contract))]]
                yield pa.record_batch(row, schema=_PART)


class Judge(StatefulProcessor):
    """Judges the parts of one partition after the other; its state is what it needs of earlier
    ones. A part comes with the contract that it is judged by."""

    def init(self, handle: Any) -> None:
        """Declare the state."""
        self._state = handle.getValueState("partition", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Judge the parts of a partition, and keep what the next ones need."""
        shipping.unpack()
        from checkers.live.partition import Partition

        [name] = key
        before = self._state.get()
        partition = Partition.new(name) if before is None else Partition.loaded(before[0])
        ordered = sorted(rows, key=lambda row: int(row["number"]))
        parts, contracts = zip(*(pickle.loads(row["data"]) for row in ordered), strict=True)
        looked = partition.judge(parts, contracts[-1])
        self._state.update((partition.dumped(),))
        if looked.seen or looked.crashed:
            yield Row(key=name, data=pickle.dumps(looked))

    def close(self) -> None:
        """Do nothing: Spark closes the state."""
