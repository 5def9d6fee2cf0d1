"""A state is read in any pieces, and a fuzzy one is made whole by replaying what follows it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.errors import WireError
from broker_impl.zookeeper import acl as acls
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
from broker_impl.zookeeper.state_stream import StateReader, StateWriter, encode_state
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import CreateSessionTxn, Header, Proposal, SetAclTxn

PATHS = ["/a", "/a/b", "/a/b/c", "/d", "/d/e"]
ACLS = [OPEN_ACL, (Acl(31, Id("digest", "u:p")),), (Acl(1, Id("world", "anyone")),)]
SESSIONS = [7, 8]


class Maker:
    """A database, and random transactions on few nodes, so that they meet."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.database = Database()
        self.proposer = Proposer(self.database)
        self.proposals: list[Proposal] = []

    def step(self) -> None:
        op, request = self._write()
        session_id = self.rng.choice(SESSIONS)
        if session_id not in self.database.sessions:
            op, request = Op.CREATE_SESSION, CreateSessionTxn(self.rng.choice([4000, 8000]))
        proposal = self.proposer.propose(
            op, request, session_id=session_id, cxid=1, ids=(Id("digest", "u:p"),),
            now_ms=len(self.proposals),
        )  # fmt: skip
        self.database.apply(proposal)
        self.proposer.applied(proposal)
        self.proposals.append(proposal)

    def _write(self) -> tuple[int, Record]:
        kind = self.rng.randrange(12)
        if kind == 0:
            return Op.CLOSE_SESSION, Nothing()
        if kind == 1:
            return Op.MULTI, MultiRequest((self._single(), self._single()))
        return self._single()

    def _single(self) -> tuple[int, Record]:
        path, acl = self.rng.choice(PATHS), self.rng.choice(ACLS)
        match self.rng.randrange(5):
            case 0:
                return Op.DELETE, PathVersion(path, -1)
            case 1:
                return Op.SET_DATA, SetDataRequest(path, self.rng.randbytes(3), -1)
            case 2 if self.rng.random() < 0.5:
                return Op.SET_ACL, SetAclRequest(path, acl, -1)
            case _:
                flags = self.rng.choice([0, 0, 0, EPHEMERAL, SEQUENTIAL, EPHEMERAL | SEQUENTIAL])
                return Op.CREATE, CreateRequest(path, b"x", acl, flags)


def read(data: bytes, zxid: int) -> Database:
    reader = StateReader(zxid)
    reader.receive(data)
    assert reader.is_complete
    assert reader.rest() == b""
    return reader.database


def facts(database: Database) -> object:
    """Everything that a state says, apart from the order of names."""
    return (
        {path: (node.stat(), node.data, node.acl, node.creates, set(node.children))
         for path, node in database.nodes.items()},
        database.sessions,
        {session: set(paths) for session, paths in database.ephemerals.items()},
        database.last_zxid,
    )  # fmt: skip


@given(st.integers(0, 2**32), st.integers(0, 60), st.data())
def test_a_state_is_read_in_any_pieces(seed: int, steps: int, data: st.DataObject) -> None:
    """The same state is read wherever its bytes are cut; what follows it is not taken."""
    maker = Maker(seed)
    for _ in range(steps):
        maker.step()
    stream = encode_state(maker.database) + b"rest"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=6)))
    reader = StateReader(maker.database.last_zxid)
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        assert not reader.is_complete or start > len(stream) - 5
        reader.receive(stream[start:end])
    assert reader.is_complete
    assert reader.rest() == b"rest"
    assert facts(reader.database) == facts(maker.database)


@settings(max_examples=300)
@given(
    seed=st.integers(0, 2**32),
    before=st.integers(0, 40),
    per_slice=st.integers(1, 4),
    between=st.integers(1, 6),
    after=st.integers(0, 20),
)
def test_a_fuzzy_state_is_made_whole_by_a_replay(
    seed: int, before: int, per_slice: int, between: int, after: int
) -> None:
    """Transactions between slices are in the state in part, and their replay completes it.

    So are counters of children, the zxids of their changes, ACLs that were set meanwhile, and
    ephemeral nodes of sessions that have ended meanwhile (ZOOKEEPER-3125, 3145, 3249).
    """
    maker = Maker(seed)
    for _ in range(before):
        maker.step()
    writer = StateWriter(maker.database)
    stream = bytearray()
    while True:
        stream += writer.slice(per_slice)
        if writer.is_complete:
            break
        for _ in range(maker.rng.randrange(between + 1)):
            maker.step()
    for _ in range(after):
        maker.step()
    found = read(bytes(stream), writer.zxid)
    assert writer.zxid == before
    for proposal in maker.proposals[before:]:
        found.replay(proposal)
    assert facts(found) == facts(maker.database)


def test_a_replay_of_everything_changes_nothing() -> None:
    """Transactions whose effects are all in the state may be replayed over it."""
    for seed in range(40):
        maker = Maker(seed)
        for _ in range(60):
            maker.step()
        expected = facts(maker.database)
        for proposal in maker.proposals:
            maker.database.replay(proposal)
        assert facts(maker.database) == expected


def stream_of_two_nodes() -> bytes:
    database = Database()
    proposer = Proposer(database)
    for op, request in (
        (Op.CREATE_SESSION, CreateSessionTxn(1)),
        (Op.CREATE, CreateRequest("/abc", b"", OPEN_ACL, 0)),
        (Op.CREATE, CreateRequest("/abc/d", b"", OPEN_ACL, 0)),
    ):
        database.apply(proposer.propose(op, request, session_id=1, cxid=1, ids=(), now_ms=1))
    return encode_state(database)


def test_a_node_without_a_parent_is_refused() -> None:
    """A state whose nodes form no tree is refused."""
    stream = stream_of_two_nodes().replace(b"\0\0\0\x06/abc/d", b"\0\0\0\x06/abd/d")
    with pytest.raises(WireError):
        read(stream, 3)


def test_an_acl_that_is_not_in_the_table_grants_nothing_until_it_is_replayed() -> None:
    """Apache ZooKeeper writes ACLs that were set after the table was written, by number only."""
    stream = stream_of_two_nodes()
    node = stream.index(b"\0\0\0\x04/abc") + 8
    stream = stream[: node + 4] + (99).to_bytes(8, "big") + stream[node + 12 :]
    database = read(stream, 3)
    assert not acls.may(database.nodes["/abc"].acl, Perm.ALL, (Id("world", "anyone"),))
    set_acl = Proposal.of(Header(1, 1, 4, 1, Op.SET_ACL), SetAclTxn("/abc", ACLS[1], 1))
    database.replay(set_acl)
    assert database.nodes["/abc"].acl == ACLS[1]
