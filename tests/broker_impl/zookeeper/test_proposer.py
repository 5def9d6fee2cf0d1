import copy
from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.proposer import Proposer
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    SEQUENTIAL,
    Acl,
    CreateRequest,
    Id,
    MultiRequest,
    Nothing,
    Op,
    PathVersion,
    Perm,
    SetAclRequest,
    SetDataRequest,
)
from broker_impl.zookeeper.tree import RESERVED, Applied, Database, Outcome
from broker_impl.zookeeper.txn_records import CreateSessionTxn, MultiTxn, Proposal

ME = 7
ALICE = Id("digest", "alice:x")
BOB = Id("digest", "bob:y")


class Server:
    """A database with a proposer and one session."""

    def __init__(self) -> None:
        self.database = Database()
        self.proposer = Proposer(self.database)
        self.do(Op.CREATE_SESSION, CreateSessionTxn(4000))

    def propose(
        self, op: int, request: Record, session: int = ME, ids: tuple[Id, ...] = ()
    ) -> Proposal:
        return self.proposer.propose(op, request, session_id=session, cxid=1, ids=ids, now_ms=5)

    def apply(self, proposal: Proposal) -> Applied:
        applied = self.database.apply(proposal)
        self.proposer.applied(proposal)
        return applied

    def do(self, op: int, request: Record, session: int = ME, ids: tuple[Id, ...] = ()) -> Outcome:
        return self.apply(self.propose(op, request, session, ids)).outcome


def create(path: str, flags: int = 0, acl: tuple[Acl, ...] = OPEN_ACL) -> CreateRequest:
    return CreateRequest(path, b"x", acl, flags)


@pytest.fixture
def server() -> Server:
    """A server with /a, /a/b, an ephemeral /e, and /secret, which only Alice may access."""
    server = Server()
    for request in (create("/a"), create("/a/b"), create("/e", EPHEMERAL)):
        assert server.do(Op.CREATE, request).error == 0
    secret = create("/secret", acl=(Acl(Perm.ALL, ALICE),))
    assert server.do(Op.CREATE, secret, ids=(ALICE,)).error == 0
    return server


NOBODY: tuple[Acl, ...] = ()


@pytest.mark.parametrize(
    ("op", "request_", "code"),
    [
        (Op.CREATE, create("/c"), Code.OK),
        (Op.CREATE, create("/a"), Code.NODE_EXISTS),
        (Op.CREATE, create("/no/c"), Code.NO_NODE),
        (Op.CREATE, create("/e/c"), Code.NO_CHILDREN_FOR_EPHEMERALS),
        (Op.CREATE, create("/secret/c"), Code.NO_AUTH),
        (Op.CREATE, create("/"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("c"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/c\0"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/a/"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/a/."), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/a/.."), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/\x19"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/\x7f"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/\ue000"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/\ufff0"), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/é "), Code.OK),
        (Op.CREATE, create("/a/", SEQUENTIAL), Code.OK),
        (Op.CREATE, create("/c", 4), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/c", -1), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/c", acl=NOBODY), Code.INVALID_ACL),
        (Op.CREATE, create("/c", acl=(Acl(31, Id("x509", "y")),)), Code.INVALID_ACL),
        (Op.CREATE, create("/c", acl=(Acl(31, Id("world", "me")),)), Code.INVALID_ACL),
        (Op.CREATE, create("/c", acl=(Acl(31, Id("digest", "me")),)), Code.INVALID_ACL),
        (Op.CREATE, create("/c", acl=(Acl(31, Id("auth", "")),)), Code.INVALID_ACL),
        # the first of several errors is the answer
        (Op.CREATE, create("/no/../c"), Code.NO_NODE),
        (Op.CREATE, create("/no/c", acl=NOBODY), Code.INVALID_ACL),
        (Op.CREATE, create("c", acl=NOBODY), Code.BAD_ARGUMENTS),
        (Op.CREATE, create("/a/\x19"), Code.BAD_ARGUMENTS),
        (Op.DELETE, PathVersion("/a/b", -1), Code.OK),
        (Op.DELETE, PathVersion("/a/b", 0), Code.OK),
        (Op.DELETE, PathVersion("/a/b", 1), Code.BAD_VERSION),
        (Op.DELETE, PathVersion("/a", -1), Code.NOT_EMPTY),
        (Op.DELETE, PathVersion("/a", 1), Code.BAD_VERSION),
        (Op.DELETE, PathVersion("/c", -1), Code.NO_NODE),
        (Op.DELETE, PathVersion("/", -1), Code.BAD_ARGUMENTS),
        (Op.DELETE, PathVersion("/secret", -1), Code.OK),  # the parent's ACL decides
        (Op.SET_DATA, SetDataRequest("/a", b"y", -1), Code.OK),
        (Op.SET_DATA, SetDataRequest("/a", b"y", 0), Code.OK),
        (Op.SET_DATA, SetDataRequest("/a", b"y", 1), Code.BAD_VERSION),
        (Op.SET_DATA, SetDataRequest("/c", b"y", -1), Code.NO_NODE),
        (Op.SET_DATA, SetDataRequest("/secret", b"y", 9), Code.NO_AUTH),
        (Op.SET_DATA, SetDataRequest("/", b"y", -1), Code.OK),
        (Op.SET_DATA, SetDataRequest("a", b"y", -1), Code.BAD_ARGUMENTS),
        (Op.SET_ACL, SetAclRequest("/a", OPEN_ACL, 0), Code.OK),
        (Op.SET_ACL, SetAclRequest("/a", OPEN_ACL, 1), Code.BAD_VERSION),
        (Op.SET_ACL, SetAclRequest("/a", NOBODY, 0), Code.INVALID_ACL),
        (Op.SET_ACL, SetAclRequest("/secret", OPEN_ACL, 0), Code.NO_AUTH),
    ],
)
def test_what_is_refused_and_why(server: Server, op: Op, request_: Record, code: Code) -> None:
    """Each write succeeds, or is refused with the error that ZooKeeper gives."""
    assert server.do(op, request_).error == code


def test_a_refusal_takes_a_zxid_and_changes_nothing(server: Server) -> None:
    """A refused write takes a zxid and changes nothing."""
    before = copy.deepcopy(server.database.nodes)
    zxid = server.database.last_zxid
    server.do(Op.CREATE, create("/a"))
    assert server.database.last_zxid == zxid + 1
    assert server.database.nodes == before


def test_sequence_numbers_count_every_child_ever_created(server: Server) -> None:
    """The sequence number, in ten digits, counts the parent's creations, whatever is deleted."""
    made = [server.do(Op.CREATE, create("/a/s-", SEQUENTIAL)).path for _ in range(2)]
    assert made == ["/a/s-0000000001", "/a/s-0000000002"]
    server.do(Op.DELETE, PathVersion(made[1], -1))
    flags = SEQUENTIAL | EPHEMERAL
    assert server.do(Op.CREATE, create("/a/t-", flags)).path == "/a/t-0000000003"


def test_a_sequence_number_overflows_to_a_negative_one(server: Server) -> None:
    """The count of creations has 32 bits and overflows to a negative number, as in ZooKeeper."""
    server.database.nodes["/a"].creates = 2**31 - 1
    assert server.do(Op.CREATE, create("/a/s-", SEQUENTIAL)).path == "/a/s-2147483647"
    assert server.do(Op.CREATE, create("/a/s-", SEQUENTIAL)).path == "/a/s--2147483648"


def test_auth_in_an_acl_becomes_the_clients_identities(server: Server) -> None:
    """`auth` in an ACL stands for the client's authenticated identities, without its address."""
    ids = (Id("ip", "127.0.0.1"), ALICE, BOB)
    acl = (Acl(Perm.READ, Id("auth", "")), Acl(Perm.READ, ALICE))
    server.do(Op.CREATE, create("/c", acl=acl), ids=ids)
    assert server.database.nodes["/c"].acl == (Acl(Perm.READ, ALICE), Acl(Perm.READ, BOB))


def test_an_identity_opens_its_nodes(server: Server) -> None:
    """A node that only Alice may access can be changed by Alice and not by Bob."""
    request = SetDataRequest("/secret", b"y", -1)
    assert server.do(Op.SET_DATA, request, ids=(BOB,)).error == Code.NO_AUTH
    assert server.do(Op.SET_DATA, request, ids=(ALICE,)).error == Code.OK


def test_a_multi_does_all_or_nothing(server: Server) -> None:
    """A refused operation of a multi undoes those before it, and those after it are not tried."""
    request = MultiRequest(
        (
            (Op.CREATE, create("/a/s-", SEQUENTIAL)),
            (Op.SET_DATA, SetDataRequest("/a", b"y", -1)),
            (Op.CHECK, PathVersion("/a", 0)),
            (Op.DELETE, PathVersion("/a/b", -1)),
        )
    )
    before = copy.deepcopy(server.database.nodes)
    outcome = server.do(Op.MULTI, request)
    assert [part.error for part in outcome.parts] == [
        Code.OK,
        Code.OK,
        Code.BAD_VERSION,
        Code.RUNTIME_INCONSISTENCY,
    ]
    assert server.database.nodes == before
    assert server.do(Op.CREATE, create("/a/s-", SEQUENTIAL)).path == "/a/s-0000000001"


def test_the_parts_of_a_multi_see_each_other_and_share_a_zxid(server: Server) -> None:
    """Operations of a multi see the effects of earlier ones, and share a zxid.

    Sequence numbers count up within the multi.
    """
    request = MultiRequest(
        (
            (Op.CREATE, create("/m")),
            (Op.CREATE, create("/m/s", SEQUENTIAL)),
            (Op.CREATE2, create("/m/s", SEQUENTIAL)),
            (Op.SET_DATA, SetDataRequest("/m", b"y", 0)),
            (Op.CHECK, PathVersion("/m", 1)),
        )
    )
    outcome = server.do(Op.MULTI, request)
    assert [part.path for part in outcome.parts[:3]] == ["/m", "/m/s0000000000", "/m/s0000000001"]
    stat = server.database.nodes["/m"].stat()
    assert stat.czxid == stat.mzxid == stat.pzxid == server.database.last_zxid


def test_an_empty_multi_is_legal(server: Server) -> None:
    """An empty multi succeeds, with a zxid of its own."""
    zxid = server.database.last_zxid
    assert server.do(Op.MULTI, MultiRequest(())).parts == ()
    assert server.database.last_zxid == zxid + 1


def test_a_closed_session_takes_its_nodes_even_those_on_their_way(server: Server) -> None:
    """Closing a session deletes its ephemeral nodes, also those that are only proposed yet.

    Nodes whose deletion is proposed are not deleted twice.
    """
    waiting = [
        server.propose(Op.CREATE, create("/late", EPHEMERAL)),
        server.propose(Op.DELETE, PathVersion("/e", -1)),
        server.propose(Op.CLOSE_SESSION, Nothing()),
        server.propose(Op.CREATE, create("/too-late")),
        server.propose(Op.CLOSE_SESSION, Nothing()),
    ]
    outcomes = [server.apply(proposal).outcome.error for proposal in waiting]
    assert outcomes == [0, 0, 0, Code.SESSION_EXPIRED, Code.SESSION_EXPIRED]
    assert server.database.nodes.keys() - RESERVED == {"/a", "/a/b", "/secret"}
    assert not server.database.ephemerals


def test_a_write_sees_those_that_are_not_yet_applied(server: Server) -> None:
    """Each write is checked as if all proposals before it had been applied."""
    writes: list[tuple[Op, Record]] = [
        (Op.DELETE, PathVersion("/a/b", -1)),
        (Op.DELETE, PathVersion("/a", -1)),
        (Op.CREATE, create("/a", EPHEMERAL)),
        (Op.CREATE, create("/a/b")),
        (Op.SET_DATA, SetDataRequest("/a", b"y", 0)),
        (Op.SET_DATA, SetDataRequest("/a", b"z", 0)),
        (Op.SET_ACL, SetAclRequest("/a", (Acl(Perm.READ, ALICE),), 0)),
        (Op.SET_DATA, SetDataRequest("/a", b"z", 1)),
    ]
    waiting = [server.propose(op, request) for op, request in writes]
    assert [server.apply(proposal).outcome.error for proposal in waiting] == [
        Code.OK,
        Code.OK,
        Code.OK,
        Code.NO_CHILDREN_FOR_EPHEMERALS,
        Code.OK,
        Code.BAD_VERSION,
        Code.OK,
        Code.NO_AUTH,
    ]
    assert server.proposer.remembers == 0


def test_a_request_of_a_session_on_its_way_is_taken(server: Server) -> None:
    """A session may write as soon as its creation is proposed."""
    begin = server.propose(Op.CREATE_SESSION, CreateSessionTxn(4000), session=8)
    write = server.propose(Op.CREATE, create("/c"), session=8)
    server.apply(begin)
    assert server.apply(write).outcome.error == 0


@dataclass
class Plain:
    """A node of the naive model."""

    data: bytes
    owner: int
    version: int = 0
    creates: int = 0


Model = dict[str, Plain]
PATHS = st.sampled_from(["/a", "/b", "/a/a", "/a/b", "/a/a/a"])
SESSIONS = st.sampled_from([1, 2])
VERSIONS = st.sampled_from([-1, -1, -1, 0, 1])
DATA = st.binary(max_size=3)
creates = st.builds(
    lambda path, data, flags: (Op.CREATE, CreateRequest(path, data, OPEN_ACL, flags)),
    PATHS,
    DATA,
    st.integers(0, 3),
)
deletes = st.builds(lambda path, version: (Op.DELETE, PathVersion(path, version)), PATHS, VERSIONS)
sets = st.builds(
    lambda path, data, version: (Op.SET_DATA, SetDataRequest(path, data, version)),
    PATHS,
    DATA,
    VERSIONS,
)
checks = st.builds(lambda path, version: (Op.CHECK, PathVersion(path, version)), PATHS, VERSIONS)


def children(model: Model, path: str) -> list[str]:
    prefix = path.rstrip("/") + "/"
    return [p for p in model if p.startswith(prefix) and "/" not in p[len(prefix) :] and p != "/"]


def change(model: Model, session: int, op: int, request: Record) -> int:
    """Apply one write to the model, or refuse it, as ZooKeeper's documentation says."""
    match request:
        case CreateRequest(path, data, _, flags):
            parent = path.rpartition("/")[0] or "/"
            if parent not in model:
                return Code.NO_NODE
            if flags & SEQUENTIAL:
                path += f"{model[parent].creates:010d}"
            if path in model:
                return Code.NODE_EXISTS
            if model[parent].owner:
                return Code.NO_CHILDREN_FOR_EPHEMERALS
            model[parent].creates += 1
            model[path] = Plain(data or b"", session if flags & EPHEMERAL else 0)
            return Code.OK
        case PathVersion(path, version) | SetDataRequest(path, _, version):
            if path not in model:
                return Code.NO_NODE
            if version not in (-1, model[path].version):
                return Code.BAD_VERSION
            if op == Op.DELETE:
                if children(model, path):
                    return Code.NOT_EMPTY
                del model[path]
            if isinstance(request, SetDataRequest):
                model[path].data = request.data or b""
                model[path].version += 1
            return Code.OK
        case _:
            raise AssertionError(request)


class AgainstTheModel(RuleBasedStateMachine):
    """Proposals are decided early and applied late, and compared with a dictionary of nodes."""

    @initialize()
    def start(self) -> None:
        self.database = Database()
        self.proposer = Proposer(self.database)
        self.model: Model = {path: Plain(b"", 0) for path in RESERVED}
        self.sessions: set[int] = set()
        self.waiting: deque[tuple[Proposal, list[int]]] = deque()
        self.open_session(1)
        self.open_session(2)

    def propose(self, session: int, op: int, request: Record, expected: list[int]) -> None:
        proposal = self.proposer.propose(op, request, session_id=session, cxid=0, ids=(), now_ms=0)
        if isinstance(proposal.txn, MultiTxn) and not proposal.txn.transactions:
            expected = []
        self.waiting.append((Proposal.decode(proposal.entry), expected))

    @rule(session=SESSIONS)
    def open_session(self, session: int) -> None:
        if session not in self.sessions:
            self.sessions.add(session)
            self.propose(session, Op.CREATE_SESSION, CreateSessionTxn(1000), [0])

    @precondition(lambda self: len(self.model) > 5)
    @rule(session=SESSIONS)
    def close_session(self, session: int) -> None:
        if session in self.sessions:
            self.sessions.discard(session)
            for path in [path for path, node in self.model.items() if node.owner == session]:
                del self.model[path]
            self.propose(session, Op.CLOSE_SESSION, Nothing(), [0])

    @rule(session=SESSIONS, write=creates | deletes | sets)
    def write(self, session: int, write: tuple[Op, Record]) -> None:
        expected = (
            change(self.model, session, *write)
            if session in self.sessions
            else Code.SESSION_EXPIRED
        )
        self.propose(session, *write, [expected])

    @rule(session=SESSIONS, parts=st.lists(creates | deletes | sets | checks, max_size=4))
    def multi(self, session: int, parts: list[tuple[Op, Record]]) -> None:
        request = MultiRequest(tuple(parts))
        if session not in self.sessions:
            self.propose(session, Op.MULTI, request, [Code.SESSION_EXPIRED])
            return
        model = copy.deepcopy(self.model)
        expected: list[int] = []
        for part in parts:
            expected.append(change(model, session, *part))
            if expected[-1]:
                break
        else:
            self.model = model
        missing = len(parts) - len(expected)
        expected += [Code.RUNTIME_INCONSISTENCY] * missing
        self.propose(session, Op.MULTI, request, expected)

    @rule(count=st.integers(1, 4))
    def catch_up(self, count: int) -> None:
        for _ in range(min(count, len(self.waiting))):
            proposal, expected = self.waiting.popleft()
            outcome = self.database.apply(proposal).outcome
            self.proposer.applied(proposal)
            errors = [part.error for part in outcome.parts] or [outcome.error]
            assert errors == (expected or [0])

    def teardown(self) -> None:
        self.catch_up(len(self.waiting))
        self.is_the_model_once_all_is_applied()

    @invariant()
    def is_the_model_once_all_is_applied(self) -> None:
        if self.waiting:
            return
        nodes = self.database.nodes
        seen = {
            path: (node.data, node.version, node.ephemeral_owner) for path, node in nodes.items()
        }
        assert seen == {path: (n.data, n.version, n.owner) for path, n in self.model.items()}
        for path, node in nodes.items():
            below = children(self.model, path)
            stat = node.stat()
            assert len(node.children) == stat.children_count == len(below)
            assert stat.cversion == 2 * self.model[path].creates - len(below)
        owned = {path for paths in self.database.ephemerals.values() for path in paths}
        assert owned == {path for path, n in self.model.items() if n.owner}
        assert set(self.database.sessions) == self.sessions
        assert not self.proposer.remembers


AgainstTheModel.TestCase.settings = settings(max_examples=100, stateful_step_count=50)
test_proposals_against_a_naive_model = AgainstTheModel.TestCase
