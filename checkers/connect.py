"""Sessions on a Spark Connect server, to which tables and code are sent.

The server may be on another machine, whose files are not those of this one. So the tables are sent
to it as files that Spark distributes to the executors, and so is the code of the kernels. (A data
frame made from a table would be a part of the query, and the server would hold its rows several
times.) The server has its own settings; only those of SQL belong to a session.
"""

import contextlib
import itertools
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from checkers import engine as engine_
from checkers import shipping
from checkers.engine import Engine, NoSpark

ANSWER_S = 10.0
"""How many seconds the server has to accept a connection."""
SHARES = 16
"""The number of tasks; each judges the partitions of some buckets."""
_FOLDER = ".spark"
_jobs = itertools.count()
_addresses: dict[str, tuple[str, int]] = {}
"""The server of each open session, by the session's id."""


def start(folder: Path, engine: Engine) -> Any:
    """Open a session; ``folder`` has the archive of the code while it is sent.

    Raises :class:`~checkers.engine.NoSpark`.
    """
    assert engine.remote is not None
    address = engine_.remote_address(engine.remote)
    # Without this, the client would try for ten minutes.
    if not _answers(address):
        raise NoSpark(f"no Spark Connect server answers at {engine.remote}")
    home = folder.resolve() / _FOLDER
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    session: Any = None
    try:
        session = SparkSession.builder.remote(engine.remote).create()
        for name, value in {**engine.conf, **engine_.FIXED_SQL}.items():
            _set(session, name, value)
        session.addArtifacts(str(shipping.archive(home)), pyfile=True)
    except (PySparkException, grpc.RpcError, OSError) as error:
        if session is not None:
            stop(session)
        why = str(error).strip().partition("\n")[0]
        raise NoSpark(f"the Spark Connect server at {engine.remote} refused: {why}") from error
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _addresses[session.session_id] = address
    return session


def _set(session: Any, name: str, value: str) -> None:
    if not session.conf.isModifiable(name):
        raise OSError(f"{name} can only be set where the server is started")
    session.conf.set(name, value)


def is_alive(session: Any) -> bool:
    """Return whether the server still accepts connections."""
    address = _addresses.get(session.session_id)
    return address is not None and not session.is_stopped and _answers(address)


def stop(session: Any) -> None:
    """Release what the server keeps for the session, even if it has ended."""
    _addresses.pop(session.session_id, None)
    with contextlib.suppress(Exception):
        session.interruptAll()
    with contextlib.suppress(Exception):
        session.stop()


def judged(
    session: Any,
    tables: Mapping[str, Path],
    task: Callable[[str], Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]],
    schema: Any,
) -> pa.Table:
    """Return what the task finds in all shares of these tables; their column ``bucket`` decides
    where a row belongs. ``task`` gets the beginning of the names of the files, which have a record
    batch for each share."""
    mark = f"job-{next(_jobs)}"  # a session keeps its files, and none may have another's name
    files = {name: path.with_name(f"{mark}-{name}.arrow") for name, path in tables.items()}
    try:
        for name, path in tables.items():
            _write_shares(pq.read_table(path), files[name])
        session.addArtifacts(*map(str, files.values()), file=True)
    finally:
        for file in files.values():
            file.unlink(missing_ok=True)
    shares = session.range(0, SHARES, 1, SHARES)
    found: pa.Table = shares.mapInArrow(task(mark), schema).toArrow()
    return found


def _write_shares(table: pa.Table, path: Path) -> None:
    share = pc.bit_wise_and(table["bucket"], SHARES - 1)
    table = table.drop_columns(["bucket"])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, table.schema, options=options) as file:
        for number in range(SHARES):
            rows = table.filter(pc.equal(share, number)).combine_chunks().to_batches()
            file.write_batch(rows[0] if rows else pa.RecordBatch.from_pylist([], table.schema))


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, ANSWER_S).close()
    except OSError:
        return False
    return True
