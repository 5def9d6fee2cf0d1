import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import WireError
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import Acl, Id, Op
from broker_impl.zookeeper.txn_records import (
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    Header,
    MultiTxn,
    Proposal,
    SetAclTxn,
    SetDataTxn,
)

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
DATA = st.none() | st.binary(max_size=5)
ACLS = st.lists(st.builds(Acl, INTS, st.builds(Id, TEXTS, TEXTS)), max_size=2).map(tuple)
singles: st.SearchStrategy[tuple[int, Record]] = st.one_of(
    st.tuples(st.just(Op.CREATE), st.builds(CreateTxn, TEXTS, DATA, ACLS, st.booleans(), INTS)),
    st.tuples(st.just(Op.DELETE), st.builds(DeleteTxn, TEXTS)),
    st.tuples(st.just(Op.SET_DATA), st.builds(SetDataTxn, TEXTS, DATA, INTS)),
    st.tuples(st.just(Op.SET_ACL), st.builds(SetAclTxn, TEXTS, ACLS, INTS)),
    st.tuples(st.just(Op.CHECK), st.builds(CheckVersionTxn, TEXTS, INTS)),
    st.tuples(st.just(Op.ERROR), st.builds(ErrorTxn, INTS)),
)
any_txn = st.one_of(
    singles,
    st.tuples(st.just(Op.MULTI), st.lists(singles, max_size=3).map(tuple).map(MultiTxn)),
    st.tuples(st.just(Op.CREATE_SESSION), st.builds(CreateSessionTxn, INTS)),
    st.tuples(st.just(Op.CLOSE_SESSION), st.lists(TEXTS).map(tuple).map(CloseSessionTxn)),
)


@given(any_txn, LONGS, INTS, LONGS, LONGS)
def test_round_trip(
    txn: tuple[int, Record], session_id: int, cxid: int, zxid: int, time_ms: int
) -> None:
    """An encoded proposal is decoded as it was."""
    proposal = Proposal.of(Header(session_id, cxid, zxid, time_ms, txn[0]), txn[1])
    assert Proposal.decode(proposal.entry) == proposal


@given(any_txn)
def test_a_digest_is_left_out(txn: tuple[int, Record]) -> None:
    """The digest that Apache ZooKeeper 3.6 appends is no part of the entry."""
    proposal = Proposal.of(Header(1, 2, 3, 4, txn[0]), txn[1])
    assert Proposal.decode(proposal.entry + b"\0\0\0\2" + b"digested") == proposal


@given(st.binary(max_size=80))
def test_garbage_is_refused_or_read(garbage: bytes) -> None:
    """Any bytes are decoded as a proposal or raise WireError."""
    try:
        Proposal.decode(garbage)
    except WireError:
        return


def test_an_unknown_type_is_refused() -> None:
    """A transaction of an unknown type, in the log of another implementation, is refused."""
    with pytest.raises(WireError):
        Proposal.decode(Header(1, 1, 1, 1, 99).encode())
