"""What workloads need from a release: API versions, each with the feature that it stands for."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from model.plan import Plan


class Need(NamedTuple):
    """A feature, and an API version that every release with the feature lists."""

    feature: str
    api: str
    key: int
    version: int
    """The least version; a release has the feature if it lists this one or a later one."""
    kip: int

    def __str__(self) -> str:
        """Return the feature with its proposal and version, for a sentence."""
        return f"{self.feature} (KIP-{self.kip}, {self.api} v{self.version})"


NEW_TOPICS: Final = Need("topics created by clients", "CreateTopics", 19, 0, 4)
TOPIC_DELETION: Final = Need("topics deleted by clients", "DeleteTopics", 20, 0, 4)
RECORD_DELETION: Final = Need("deletion of records", "DeleteRecords", 21, 0, 107)
IDEMPOTENCE: Final = Need("idempotent producers", "InitProducerId", 22, 0, 98)
TRANSACTIONS: Final = Need("transactions", "AddPartitionsToTxn", 24, 0, 98)
FENCED_COMMITS: Final = Need("fenced group members in transactions", "TxnOffsetCommit", 28, 3, 447)
OFFSET_TRANSACTIONS: Final = Need("offsets in transactions", "TxnOffsetCommit", 28, 0, 98)
TOPIC_SETTINGS: Final = Need("changes of topic settings", "AlterConfigs", 33, 0, 133)
SINGLE_SETTINGS: Final = Need("changes of single settings", "IncrementalAlterConfigs", 44, 0, 339)
OFFSET_DELETION: Final = Need("deletion of offsets", "OffsetDelete", 47, 0, 496)
STATIC_MEMBERS: Final = Need("static members", "JoinGroup", 11, 5, 345)
CONSUMER_PROTOCOL: Final = Need("the consumer group protocol", "ConsumerGroupHeartbeat", 68, 0, 848)

ALL: Final = (
    *(NEW_TOPICS, TOPIC_DELETION, RECORD_DELETION, IDEMPOTENCE, TRANSACTIONS, OFFSET_TRANSACTIONS),
    *(FENCED_COMMITS, TOPIC_SETTINGS, SINGLE_SETTINGS, OFFSET_DELETION, STATIC_MEMBERS),
    CONSUMER_PROTOCOL,
)
"""Every feature that some plan may need."""


def of_producers(plan: Plan) -> tuple[Need, ...]:
    """Return what writing and reading needs, with the producer and the deletions of a plan."""
    needs = [NEW_TOPICS]
    if plan.producer.get("enable.idempotence") == "true":
        needs.append(IDEMPOTENCE)
    if plan.options.get("deletes_hz"):
        needs.append(RECORD_DELETION)
    return tuple(needs)


def of_members(plan: Plan) -> tuple[Need, ...]:
    """Return what groups need in addition: static members, deleted offsets, the newer protocol."""
    needs = [*of_producers(plan)]
    if plan.options.get("static_p"):
        needs.append(STATIC_MEMBERS)
    if plan.options.get("offset_deletes_hz") or plan.options.get("delete_p"):
        needs.append(OFFSET_DELETION)
    if plan.options.get("txn_p"):
        needs += [TRANSACTIONS, OFFSET_TRANSACTIONS]
    if plan.consumer.get("group.protocol") == "consumer":
        needs.append(CONSUMER_PROTOCOL)
    return tuple(needs)


def of_transactions(plan: Plan) -> tuple[Need, ...]:
    """Return what transactions need, with committed positions if members of groups make them.

    Before KIP-447, a coordinator accepts the positions of a member that has left the group, so a
    transactional id would have to belong to one input partition, which no workload does.
    """
    fenced = (FENCED_COMMITS,) if plan.options.get("subscribe") else ()
    return (*of_producers(plan), TRANSACTIONS, *fenced)


def of_compaction(plan: Plan) -> tuple[Need, ...]:
    """Return what compacted topics need: transactions and changed policies only if planned."""
    needs = [NEW_TOPICS]
    if plan.producer.get("enable.idempotence") == "true":
        needs.append(IDEMPOTENCE)
    if plan.options.get("txn_p"):
        needs.append(TRANSACTIONS)
    if plan.options.get("policies_s"):
        is_single = plan.options.get("client") == "librdkafka"
        needs.append(SINGLE_SETTINGS if is_single else TOPIC_SETTINGS)
    return tuple(needs)


def of_deletion(plan: Plan) -> tuple[Need, ...]:
    """Return what topics need that are deleted and created again."""
    return (*of_producers(plan), TOPIC_DELETION)


def missing(needs: Iterable[Need], apis: Mapping[int, range]) -> list[Need]:
    """Return the needs that a release with these API versions, by key, does not meet."""
    return [need for need in needs if apis.get(need.key, range(0)).stop <= need.version]


def refusal(
    workload: str, needs: Iterable[Need], apis: Mapping[int, range], system: str
) -> str | None:
    """Return why a workload cannot run on a system, in one sentence; ``None`` if it can.

    ``system`` names the release, such as ``Apache Kafka 0.10.2.2``.
    """
    absent = missing(needs, apis)
    if not absent:
        return None
    what = " and ".join(f"{need.feature} (KIP-{need.kip})" for need in absent)
    return f"workload {workload} needs {what}, which {system} does not have"
