"""A server without an ensemble: it is its own quorum, so what it has logged is committed."""

from collections.abc import Callable

from broker_impl.zookeeper import sessions
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.pipeline import Pipeline, Request
from broker_impl.zookeeper.proposer import Proposer
from broker_impl.zookeeper.records import Op
from broker_impl.zookeeper.sessions import SessionTracker


class Standalone:
    """Orders the writes of one server, with one sync of the log for all that arrive together."""

    def __init__(self, history: History, wall_ms: Callable[[], int]) -> None:
        self._history = history
        self._wall_ms = wall_ms
        self._proposer = Proposer(history.database)
        self._queue: list[Request] = []
        self._pipeline: Pipeline

    def attach(self, pipeline: Pipeline) -> None:
        """Set the pipeline that gets the answers."""
        self._pipeline = pipeline

    def submit(self, request: Request) -> None:
        """Take a write or a sync."""
        self._queue.append(request)

    def flush(self) -> None:
        """Log everything that was submitted, then apply it; raises StorageError."""
        queue, self._queue = self._queue, []
        proposals = [
            self._proposer.propose(
                request.op,
                request.body,
                session_id=request.session_id,
                cxid=request.xid,
                ids=request.ids,
                now_ms=self._wall_ms(),
            )
            for request in queue
            if request.op != Op.SYNC
        ]
        if proposals:
            self._history.log(proposals)
        following = iter(proposals)
        for request in queue:
            if request.op == Op.SYNC:
                self._pipeline.synced(request)
            else:
                proposal = next(following)
                self._history.commit(proposal.header.zxid)
                self._proposer.applied(proposal)

    def revalidate(self, session_id: int, timeout_ms: int) -> None:
        """Answer at once whether a session lives."""
        del timeout_ms
        self._pipeline.revalidated(session_id, session_id in self._history.database.sessions)


def pipeline(
    history: History,
    *,
    secret: bytes,
    tick_ms: int,
    wall_ms: Callable[[], int],
    clock: Callable[[], float],
) -> Pipeline:
    """Return the pipeline of a server without an ensemble.

    Args:
        history: the log and the state.
        secret: the passwords of sessions are made from it.
        tick_ms: session timeouts are 2 to 20 ticks.
        wall_ms: the wall clock in milliseconds.
        clock: the loop's clock in seconds.
    """
    tracker = SessionTracker(tick_ms)
    tracker.add_all(history.database.sessions, clock())
    orderer = Standalone(history, wall_ms)
    made = Pipeline(
        history,
        orderer,
        tracker,
        password=lambda session_id: sessions.password(secret, session_id),
        wall_ms=wall_ms,
        clock=clock,
    )
    orderer.attach(made)
    return made
