"""Writes over the former connection of a session that returns to the same server of an ensemble."""

from broker_impl.zookeeper.pipeline import Request
from broker_impl.zookeeper.records import ConnectRequest, Op
from broker_impl.zookeeper.standalone import Standalone
from tests.broker_impl.zookeeper.test_pipeline import Client, World, create


class Asking(Standalone):
    """An orderer that asks a leader whether a session lives: the answer comes later."""

    def __init__(self, world: World) -> None:
        super().__init__(world.pipeline._history, lambda: 1)
        self.attach(world.pipeline)
        self.sent: list[str] = []

    def submit(self, request: Request) -> None:
        self.sent.append(f"request {request.xid}")
        super().submit(request)

    def revalidate(self, session_id: int, timeout_ms: int) -> None:
        self.sent.append("question")


def test_a_former_connection_is_over_before_its_session_returns() -> None:
    """A write that has arrived precedes the question about the session, and no later one counts.

    Otherwise the client could read over its new connection that a write was not executed, and the
    server would execute it after that.
    """
    world = World()
    former, new = Client(world), Client(world)
    session = former.connect()
    orderer = Asking(world)
    world.pipeline._orderer = orderer
    former.submit(Op.CREATE, create("/a"))
    request = ConnectRequest(0, 0, 4000, session.session_id, session.password, read_only=False)
    world.pipeline.connect(new, request)
    assert orderer.sent == ["request 1", "question"]
    assert (former.is_open, new.is_open) == (False, True)
    world.pipeline.turn()
    world.pipeline.revalidated(session.session_id, True)
    assert "/a" in world.pipeline.database.nodes
    assert new.taken() == [(session,)]
