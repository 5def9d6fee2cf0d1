"""Answers to requests that are refused as a whole, where the request has no parts."""

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.end_txn_response import EndTxnResponse


def of_end_txn() -> EndTxnResponse:
    """Return the answer to a client that may not use its transactional id: nothing has ended."""
    return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
