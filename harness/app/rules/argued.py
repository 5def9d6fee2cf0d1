"""Branches of the rules that no run of a search can reach, each with the reason.

They do not count as missing. A branch that is reached all the same counts as reached.
"""

from collections.abc import Mapping

_CONSTANT = "the rule that is called is constant; only a planted bug replaces it"
_EXPIRY = "a commit names its own expiry only before version 5 of OffsetCommit, and no client does"
_NO_EPOCHS = "no request of Kafka 2.8 says with which epoch a broker fetches or is alive (KIP-903)"
_MALFORMED = "no broker writes such a control record, and damage does not pass the checksum"
_IN_ORDER = (
    "orders come over one connection, and an order on a connection that the controller has given up"
    " is refused before, whatever its epochs are (finding 9)"
)
_EXHAUSTED = "a transactional id exhausts the epochs of a producer id after 32,766 producers"

ARGUED: Mapping[str, Mapping[str, str]] = {
    "broker_impl.api.fetch:may_ask_followers": {
        "version >= _FOLLOWERS_SINCE: false": "clients of simulations fetch by version 11 or later",
    },
    "broker_impl.api.cluster_view:is_news": {
        "update_epoch >= known_epoch: false": f"{_IN_ORDER}; the first update after a registration"
        " replaces all topics",
    },
    "broker_impl.coordinator.groups.rules:commit_state_error": {
        "state is GroupStatus.DEAD: true": "a group that is dead is removed in the same event",
    },
    "broker_impl.coordinator.groups.rules:is_subscribed": {
        "subscribed is None: true": "all members have subscriptions that the coordinator knows",
    },
    "broker_impl.coordinator.groups.rules:static_join_rebalances": {
        "state is GroupStatus.COMPLETING: false": "a group that knows the static member which comes"
        " again is stable or completes a rebalance; one that prepares a rebalance is not asked",
    },
    "broker_impl.coordinator.records:encode_offset": {"has_expiry: true": _EXPIRY},
    "broker_impl.coordinator.transactions.rules:is_known_producer": {
        "producer_id == metadata.last_producer_id: true": _EXHAUSTED,
    },
    "broker_impl.log.aborted_index:decode_marker": {
        "records: false": "compaction keeps the markers of transactions for a day in drawn plans,"
        " because aiokafka cannot read control batches that are empty (KAFKA-7467)",
        "records[0].key: false": _MALFORMED,
        "records[0].value: false": _MALFORMED,
        "len(key) < _KEY.size: true": _MALFORMED,
        "kind not in (ABORT, COMMIT): true": _MALFORMED,
        "len(value) < _VALUE.size: true": _MALFORMED,
    },
    "broker_impl.log.loading:replay": {"producers.folds_replicated_batches(): false": _CONSTANT},
    "broker_impl.log.producers:copied": {"folds_replicated_batches(): false": _CONSTANT},
    "broker_impl.node.coordinators.internal_topics:goes_on": {
        "first is not None: false": "compaction keeps the last committed batch (KAFKA-17076), so"
        " that a read before the end returns one, unless a pass runs between two reads of one load",
    },
    "broker_impl.replica.fencing:stop": {
        "request_epoch == known_epoch: false": _IN_ORDER,
        "delete: true": "each change of a partition's replicas starts an epoch, so that no deletion"
        " has an epoch that its broker already knows",
    },
    "broker_impl.replica.isr:eligible": {
        "live_epoch == fetch_epoch: false": _NO_EPOCHS,
        "-1 in (live_epoch, fetch_epoch): true": _NO_EPOCHS,
        "-1 in (live_epoch, fetch_epoch): false": _NO_EPOCHS,
    },
    "broker_impl.replica.selection:preferred": {
        "rack: false": "only a consumer that names its rack is directed to another replica",
    },
    "broker_impl.security.sessions:is_expired": {
        "since is not None: false": "only a client that is authenticated is asked",
    },
    "broker_impl.replica.topic_identity:is_of_deleted_topic": {
        "ordered == NO_UUID: true": "the controllers of searches name topics by their ids as well",
    },
}
"""The reason, by rule (``module:function``) and branch (``condition: outcome``)."""
