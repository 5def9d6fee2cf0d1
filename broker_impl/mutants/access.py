"""Bugs in what clients may do whose rights change while they are connected."""

from broker_impl.mutants import mutant
from broker_impl.wire.messages.end_txn_response import EndTxnResponse


@mutant(
    "refused-commit-answered-done",
    of="broker_impl.api.access.refusals:of_end_txn",
    source="KIP-11 and KIP-98 are related",
    kind="mutation",
    symptom="lost-write",
    schedule="An operator takes the right to use transactional ids away between the records of a "
    "transaction and its commit.",
)
def of_end_txn() -> EndTxnResponse:
    """The refusal of a request to end a transaction has no error, so that it looks like a success.

    The transaction stays open, although its client believes that it was committed, until its
    timeout or the next owner of the transactional id aborts it.
    """
    return EndTxnResponse()
