"""Sessions on a Spark Connect server, to which tables and code are sent.

The server may be on another machine, whose files are not those of this one. So the tables are sent
to it as files that Spark distributes to the executors, and so is the code of the kernels. (A data
frame made from a table would be a part of the query, and the server would hold its rows several
times.) The server has its own settings; only those of SQL belong to a session.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from checkers import engine as engine_
from checkers import shipping
from checkers.engine import Engine, NoSpark

ANSWER_S = 10.0
"""How many seconds the server has to accept a connection."""
RETRIES = DefaultPolicy(8, backoff_multiplier=2.0, initial_backoff=500, max_backoff=5000)
"""A request is repeated for about 30 s; by default it is for more than ten minutes."""
SHARES = 16
"""The least number of tasks; each judges the partitions of some buckets."""
SHARE_ROWS = 1 << 20
"""The number of rows of a table that a task has about; more rows, more tasks."""
CHUNK_ROWS = 1 << 20
"""The number of rows that are sorted into shares at once."""
_jobs = itertools.count()
_urls: dict[str, str] = {}
"""The URL of each open session, by the session's id."""


def start(folder: Path, engine: Engine) -> Any:
    """Open a session; ``folder`` has the archive of the code while it is sent.

    Raises :class:`~checkers.engine.NoSpark`.
    """
    assert engine.remote is not None
    # The URL may have a token, which does not belong into messages.
    name = "sc://{}:{}".format(*engine_.remote_address(engine.remote))
    if not _answers(engine.remote):
        raise NoSpark(f"no Spark Connect server answers at {name}")
    settings = {**engine.conf, **engine_.fixed_values(of_session=True)}
    session: Any = None
    try:
        session = SparkSession.builder.remote(engine.remote).create()
        _urls[session.session_id] = engine.remote
        session.client.set_retry_policies([RETRIES])
        for setting, value in settings.items():
            _set(session, setting, value)
        with tempfile.TemporaryDirectory(dir=folder.resolve()) as home:
            session.addArtifacts(str(shipping.archive(Path(home))), pyfile=True)
    except (PySparkException, grpc.RpcError, OSError) as error:
        if session is not None:
            stop(session)
        why = str(error).strip().partition("\n")[0]
        raise NoSpark(f"the Spark Connect server at {name} refused: {why}") from error
    return session


def _set(session: Any, name: str, value: str) -> None:
    if not session.conf.isModifiable(name):
        raise OSError(f"{name} can only be set where the server is started")
    session.conf.set(name, value)


def is_alive(session: Any) -> bool:
    """Return whether the server answers and still has the session."""
    url = _urls.get(session.session_id)
    if url is None or session.is_stopped or not _answers(url):
        return False
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception:  # noqa: BLE001 - a session that has ended fails in many ways
        return False
    return True


def stop(session: Any) -> None:
    """Release what the server keeps for the session, even if it has ended."""
    url = _urls.pop(session.session_id, None)
    if url is None or not _answers(url):
        with contextlib.suppress(Exception):
            session.client.close()
        return
    with contextlib.suppress(Exception):
        session.interruptAll()
    with contextlib.suppress(Exception):
        session.stop()


def judged(
    session: Any,
    tables: Mapping[str, Path],
    task: Callable[[str, int], Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]],
    schema: Any,
) -> pa.Table:
    """Return what the task finds in all shares of these tables; their column ``bucket`` decides
    where a row belongs.

    ``task`` gets the beginning of the names of the files and the number of shares. The batches of
    a share are those whose number has the share as its remainder.
    """
    mark = f"job-{next(_jobs)}"  # a session keeps its files, and none may have another's name
    files = {name: path.with_name(f"{mark}-{name}.arrow") for name, path in tables.items()}
    rows = max(pq.read_metadata(path).num_rows for path in tables.values())
    shares = max(SHARES, -(-rows // SHARE_ROWS))
    try:
        for name, path in tables.items():
            write_shares(path, files[name], shares)
        session.addArtifacts(*map(str, files.values()), file=True)
    finally:
        for file in files.values():
            file.unlink(missing_ok=True)
    numbers = session.range(0, shares, 1, shares)
    found: pa.Table = numbers.mapInArrow(task(mark, shares), schema).toArrow()
    return found


def write_shares(table: Path, path: Path, shares: int) -> None:
    """Write a Parquet file with a column ``bucket`` as an Arrow file that :func:`judged` sends."""
    rows = pq.ParquetFile(table)
    schema = rows.schema_arrow.remove(rows.schema_arrow.get_field_index("bucket"))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, schema, options=options) as file:
        for batch in rows.iter_batches(CHUNK_ROWS):
            share = batch.column("bucket").to_numpy() % shares
            kept = batch.select(schema.names)
            for number in range(shares):
                file.write_batch(kept.take(pa.array(np.flatnonzero(share == number))))


def _answers(url: str) -> bool:
    """Return whether a server accepts connections; a port that is only open does not count."""
    try:
        channel = DefaultChannelBuilder(url).toChannel()
        try:
            grpc.channel_ready_future(channel).result(ANSWER_S)
        finally:
            channel.close()
    except Exception:  # noqa: BLE001 - whatever keeps it from answering
        return False
    return True
