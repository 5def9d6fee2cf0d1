"""The invariants of what brokers answer about logs."""

from checkers.invariants.row import Invariant

LOG_ANSWERS = (
    Invariant(
        id="answer-above-hw",
        rules="R10",
        summary="A client received records, or a high watermark, above the leader's own.",
        holds=(
            "a fetch returns no record above the watermark that it states, to read_committed none "
            "above the stable offset; no leader states a watermark above its own"
        ),
    ),
    Invariant(
        id="answered-hw-monotone",
        rules="R7",
        summary="A leader answered a later request with an earlier high watermark.",
        holds=(
            "while a broker leads in one epoch, a request that arrives after a watermark was "
            "stated is not answered with an earlier one"
        ),
    ),
    Invariant(
        id="acknowledged-above-hw",
        rules="R11",
        summary="A batch was acknowledged with acks=all before all replicas in sync had it.",
        holds="a produce request with acks=all is acknowledged only below the leader's watermark",
    ),
    Invariant(
        id="answered-as-leader",
        rules="E5, KIP-320, KIP-392",
        summary="A replica answered a client that it should have refused.",
        holds=(
            "only the leader answers ListOffsets, OffsetForLeaderEpoch and Fetch, a follower a "
            "fetch only if the consumer names its rack; both only in the leader epoch that the "
            "client names"
        ),
    ),
    Invariant(
        id="refused-by-epoch",
        rules="E5, KAFKA-1188, KAFKA-7395, KIP-98, KIP-320, KIP-380",
        summary="A broker served a request of another epoch, or refused one of its own epoch.",
        holds=(
            "Fetch, ListOffsets and OffsetForLeaderEpoch, of clients and of followers, are refused "
            "as fenced or unknown exactly if they name another leader epoch; orders in an earlier "
            "controller or broker epoch are refused, and no others; a marker has at least the "
            "producer epoch and the coordinator epoch that the log knows"
        ),
    ),
    Invariant(
        id="listed-as-stored",
        rules="R7, KAFKA-5522, KIP-207, KIP-734",
        summary="ListOffsets returned another offset than the log has.",
        holds=(
            "the earliest offset is the start of the log, the latest one the end for this reader; "
            "an offset by time is that of the first record with this time or a later one, and that "
            "of the largest time has it; none is before the start of the log"
        ),
        suspended_under="by time: batches that begin before the start of the log",
    ),
    Invariant(
        id="epoch-end-as-stored",
        rules="E4, KIP-279, KIP-320, KIP-595",
        summary="OffsetForLeaderEpoch returned another end of an epoch than the log has.",
        holds=(
            "a leader epoch ends where the records of the first later epoch begin, and the leader "
            "answers for the last epoch up to the one that was asked for of which it has records, "
            "also in a fetch of a follower whose log diverges"
        ),
        suspended_under="compacted logs, and epochs before the first one of the log",
    ),
    Invariant(
        id="read-as-stored",
        rules="R10, T1, KIP-227, KIP-392",
        summary="A fetch returned something else than the log has from its offset on.",
        holds=(
            "a fetch returns the batches of the log one after the other, from the one with its "
            "offset on; an offset within the log is not out of range; a follower states no high "
            "watermark, and no replica a start of the log, above its own; a leader states no "
            "stable offset above the begin of an open transaction; a response of a fetch session "
            "does not leave out the only partition that was named, if it has records"
        ),
        suspended_under="the batches: compacted logs",
    ),
    Invariant(
        id="fetched-within-limits",
        rules="KIP-74",
        summary="A fetch returned more bytes than the reader asked for.",
        holds=(
            "a response has no more bytes of records than `max_bytes` and `fetch.max.bytes` "
            "permit, and of each partition no more than `partition_max_bytes`; only a single batch "
            "may be larger"
        ),
        suspended_under=(
            "`partition_max_bytes`: partitions that a fetch session does not name again"
        ),
    ),
    Invariant(
        id="fetched-when-readable",
        rules="KIP-74, KIP-98, KIP-227",
        summary="A fetch returned no records of a partition that has some.",
        holds=(
            "the answer to a consumer has records of each partition of the request, and of its "
            "fetch session, that had readable ones when the request arrived, as far as the limits "
            "of bytes have room for the next batch"
        ),
        suspended_under="consumers that name a rack",
    ),
    Invariant(
        id="answered-in-order",
        rules="Kafka's protocol",
        summary="A broker answers the requests of a connection in another order than they came.",
        holds=(
            "each response on a connection has the correlation id of the oldest request that has "
            "none; a Produce may have no response, because its acks are not read, and gets none "
            "after a later response"
        ),
        suspended_under=(
            "connections after SaslHandshake v0, or that carry anything other than the frames of "
            "known requests"
        ),
    ),
    Invariant(
        id="preferred-in-sync",
        rules="KIP-392",
        summary="A leader prefers a read replica that is not in sync, or not in the reader's rack.",
        holds=(
            "the preferred read replica is another broker, in the ISR and in the reader's rack, "
            "and has the record at the fetch offset, or will have it next"
        ),
    ),
    Invariant(
        id="acknowledged-as-stored",
        rules="P1, P2, KAFKA-2960, KIP-32, KIP-98, KIP-110",
        summary="A batch was acknowledged that the log does not have so, or not in sequence.",
        holds=(
            "an acknowledged batch of an idempotent producer is in the leader's log at the offset "
            "in the answer, with acks=all also if the leader was replaced meanwhile; within an "
            "epoch its sequence follows that of the producer's batch before it, and a later epoch "
            "begins with 0; it has the LogAppendTime that was answered, the codec of "
            "`compression.type` and the type of times of `message.timestamp.type`"
        ),
        suspended_under=(
            "compacted logs; the sequence: a `producer.id.expiration.ms` of less than a day; "
            "leaders that were replaced: unclean elections"
        ),
    ),
    Invariant(
        id="deleted-on-all-replicas",
        rules="KIP-107",
        summary="A deletion of records was acknowledged before all live replicas had applied it.",
        holds=(
            "when DeleteRecords is answered, the logs of all live replicas start at its low "
            "watermark or later, which is not below the offset that was asked for"
        ),
        suspended_under=(
            "replicas whose broker registers meanwhile; leaders that are elected meanwhile"
        ),
    ),
)
