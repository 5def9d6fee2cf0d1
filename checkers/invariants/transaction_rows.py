"""The invariants of transactions, and of the offsets that are committed in them."""

from checkers.invariants.row import Invariant

TRANSACTIONS = (
    Invariant(
        id="producer-refused",
        rules="T4, KIP-98, KIP-360",
        summary="A coordinator accepted a request of a producer that is not the current one.",
        holds=(
            "a transaction is changed by the current producer id and epoch alone, and what was "
            "committed is not aborted afterwards, nor the other way around; a producer that was "
            "replaced gets no epoch, and a group accepts no offsets of an older epoch than that of "
            "the producer's open transaction"
        ),
    ),
    Invariant(
        id="epoch-issued-once",
        rules="T4, KIP-98",
        summary="A producer epoch was issued again.",
        holds="each InitProducerId without an epoch is answered with a later one than before",
    ),
    Invariant(
        id="added-partition-kept",
        rules="T1, KIP-98",
        summary="An open transaction lacks a partition that was added to it.",
        holds="an open transaction has each partition whose addition was acknowledged",
    ),
    Invariant(
        id="aborted-after-timeout",
        rules="T7, KIP-98",
        summary="A coordinator aborted a transaction before its timeout, or has another one.",
        holds=(
            "a transaction that its producer does not end, and whose transactional id no producer "
            "asks for, is aborted only after the timeout of this producer, which counts from the "
            "first partition of this transaction; each coordinator has the timeout that the "
            "producer has asked for"
        ),
        suspended_under=(
            "`clock-jump`, `clock-skew`; transactional ids of which an InitProducerId was never "
            "answered; coordinators whose logs have lost records"
        ),
    ),
    Invariant(
        id="transactional-id-kept",
        rules="KIP-98",
        summary="A coordinator forgot a transactional id too early.",
        holds=(
            "a transactional id is forgotten only `transactional.id.expiration.ms` after the last "
            "InitProducerId, and after the last EndTxn that has ended a transaction"
        ),
        suspended_under="`clock-jump`, `clock-skew`; coordinators whose logs have lost records",
    ),
    Invariant(
        id="accepted-outside-transaction",
        rules="KIP-890",
        summary="A broker accepted records or offsets of a transaction that was not open.",
        holds=(
            "a transaction begins in a partition, or in the offsets of a group, only while its "
            "coordinator says that it is open and has that partition, and has not decided its end"
        ),
        suspended_under="`transaction.partition.verification.enable=false`",
    ),
    Invariant(
        id="stable-offset-settled",
        rules="KIP-447",
        summary="An offset was returned as stable while an open transaction may change it.",
        holds=(
            "a request for stable offsets is not answered with an offset for which an open "
            "transaction has committed another one"
        ),
        suspended_under="unclean elections; commits before the deletion of their topic",
    ),
)
