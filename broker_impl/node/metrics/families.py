"""The metrics of a broker, under the names that Kafka's own metrics have in Prometheus.

The names are those that the JMX exporter's configuration for Kafka gives to Kafka's MBeans, so that
dashboards for Kafka can be used: ``kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec`` is
``kafka_server_brokertopicmetrics_bytesin_total``. Committed offsets and the ends of partitions have
the names of kafka_exporter. docs/monitoring.md lists all of them.

Each generator yields families one by one, and reads the broker's state only when the next family is
asked for, so that requests can be served between two of them.
"""

from collections.abc import Iterator

from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import InfoMetricFamily, Metric

from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.counts import FOLLOWER_FETCH
from broker_impl.node.metrics.source import Source, counter, gauge, histogram, single
from broker_impl.replica.events import Role
from broker_impl.replica.partition import Partition
from broker_impl.wire.messages.apis import APIS

_PARTITION = ("topic", "partition")
_FETCH = 1
_PROCESS = ProcessCollector(registry=None)


def all_families(source: Source) -> Iterator[Metric]:
    """All families of a broker."""
    yield from _identity(source)
    yield from _controller(source)
    yield from _replicas(source)
    yield from _traffic(source)
    yield from _requests(source)
    yield from _logs(source)
    yield from _groups(source)
    yield from _PROCESS.collect()


def _identity(source: Source) -> Iterator[Metric]:
    broker = source.broker
    identity = {"id": str(broker.config.broker_id), "cluster": broker.cluster_id}
    yield InfoMetricFamily("kafka_server_app", "The broker and its cluster.", value=identity)
    yield counter(
        "kafka_server_sessionexpirelistener_zookeeperexpires",
        "ZooKeeper sessions of this broker that have expired.",
        single(broker.counts.expired_sessions),
    )


def _controller(source: Source) -> Iterator[Metric]:
    figures, counts = source.broker.controller.figures(), source.broker.counts
    name = "kafka_controller_kafkacontroller_"
    yield gauge(
        f"{name}activecontrollercount",
        "1 if this broker is the controller; the sum over all brokers must be 1.",
        single(figures is not None),
    )
    yield gauge(
        f"{name}offlinepartitionscount",
        "Partitions without a live leader; 0 on brokers that are not the controller.",
        single(figures.offline if figures else 0),
    )
    yield gauge(
        f"{name}preferredreplicaimbalancecount",
        "Partitions whose leader is not the preferred one; 0 unless this is the controller.",
        single(figures.imbalanced if figures else 0),
    )
    yield gauge(
        f"{name}globaltopiccount",
        "Topics of the cluster; 0 on brokers that are not the controller.",
        single(figures.topics if figures else 0),
    )
    yield gauge(
        f"{name}globalpartitioncount",
        "Partitions of the cluster; 0 on brokers that are not the controller.",
        single(figures.partitions if figures else 0),
    )
    yield counter(
        "kafka_controller_controllerstats_leaderelections",
        "Leaders of partitions that this broker has elected as the controller.",
        single(counts.elections),
    )
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Elected leaders that were not in sync: acknowledged records may be lost.",
        single(counts.unclean_elections),
    )


def _replicas(source: Source) -> Iterator[Metric]:
    broker = source.broker
    replicas = broker.replicas.partitions
    led = [each for each in replicas.values() if each.role is Role.LEADER]
    name = "kafka_server_replicamanager_"
    yield gauge(f"{name}partitioncount", "Replicas on this broker.", single(len(replicas)))
    yield gauge(f"{name}leadercount", "Partitions that this broker leads.", single(len(led)))
    yield gauge(
        f"{name}underreplicatedpartitions",
        "Partitions led here that have replicas out of sync.",
        single(sum(len(each.isr) < len(each.replicas) for each in led)),
    )
    yield gauge(
        f"{name}underminisrpartitioncount",
        "Partitions led here that have fewer in-sync replicas than min.insync.replicas.",
        single(sum(len(each.isr) < each.isr_min for each in led)),
    )
    yield gauge(
        f"{name}atminisrpartitioncount",
        "Partitions led here that have exactly min.insync.replicas in-sync replicas.",
        single(sum(len(each.isr) == each.isr_min for each in led)),
    )
    yield counter(
        f"{name}isrshrinks",
        "ISRs that this broker, as their leader, has made smaller.",
        single(broker.counts.isr_shrinks),
    )
    yield counter(
        f"{name}isrexpands",
        "ISRs that this broker, as their leader, has made larger.",
        single(broker.counts.isr_expands),
    )
    yield gauge(
        "kafka_topic_partition_current_offset",
        "The high watermark of each partition led here.",
        ((_place(each), each.high_watermark) for each in led),
        _PARTITION,
    )
    yield gauge(
        "kafka_topic_partition_oldest_offset",
        "The first offset of each partition led here.",
        ((_place(each), each.log.start_offset) for each in led),
        _PARTITION,
    )
    yield gauge(
        "kafka_topic_partition_in_sync_replica",
        "The number of in-sync replicas of each partition led here.",
        ((_place(each), len(each.isr)) for each in led),
        _PARTITION,
    )


def _place(partition: Partition) -> tuple[str, str]:
    return partition.tp.topic, str(partition.tp.partition)


def _traffic(source: Source) -> Iterator[Metric]:
    counts = source.broker.counts
    name = "kafka_server_brokertopicmetrics_"
    for field, about, column in (
        ("bytesin", "Bytes of batches that clients wrote.", "bytes_in"),
        ("bytesout", "Bytes of batches that consumers read.", "bytes_out"),
        ("messagesin", "Records that clients wrote.", "messages_in"),
        ("totalproducerequests", "Batches that were appended for clients.", "produces"),
        ("totalfetchrequests", "Partitions that consumers fetched.", "fetches"),
    ):
        topics = counts.topics.items()
        rows = [((topic,), getattr(each, column)) for topic, each in topics]
        yield counter(name + field, about, rows, ("topic",))
    for field, about, count in (
        ("failedproducerequests", "Batches that were rejected.", counts.failed_produces),
        ("failedfetchrequests", "Partitions fetched with an error.", counts.failed_fetches),
        ("replicationbytesin", "Bytes fetched from leaders.", counts.replication_bytes_in),
        ("replicationbytesout", "Bytes that followers fetched.", counts.replication_bytes_out),
    ):
        yield counter(name + field, about, single(count))


def _requests(source: Source) -> Iterator[Metric]:
    broker = source.broker
    yield histogram(
        "kafka_network_requestmetrics_totaltimems",
        "Milliseconds from the arrival of a request to its answer, waiting included.",
        [((_request(kind),), each) for kind, each in broker.counts.requests.items()],
        ("request",),
    )
    yield counter(
        "kafka_server_kafkarequesthandlerpool_requesthandleridle_seconds",
        "Seconds in which the loop that handles all requests was idle.",
        single(source.idle.idle_s),
    )
    yield gauge(
        "kafka_server_socketservermetrics_connection_count",
        "Open connections.",
        [((listener,), count) for listener, count in broker.connections().items()],
        ("listener",),
    )
    yield gauge(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Requests that wait for data, for replication or for other members of a group.",
        single(len(broker.waiting)),
    )
    yield gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Incremental fetch sessions.",
        single(len(broker.sessions)),
    )


def _request(kind: int) -> str:
    """The name of a kind of request, as Kafka's metrics have it."""
    if kind == FOLLOWER_FETCH:
        return "FetchFollower"
    return "FetchConsumer" if kind == _FETCH else APIS[kind].name


def _logs(source: Source) -> Iterator[Metric]:
    logs = source.broker.replicas.logs.logs
    for field, about, read in (
        ("size", "Bytes of each log on this broker.", lambda log: log.size_bytes),
        ("numlogsegments", "Segments of each log.", lambda log: len(log.segments)),
        ("logstartoffset", "The first offset of each log.", lambda log: log.start_offset),
        ("logendoffset", "The offset after each log's end.", lambda log: log.end_offset),
    ):
        rows = [((tp.topic, str(tp.partition)), read(log)) for tp, log in logs.items()]
        yield gauge(f"kafka_log_log_{field}", about, rows, _PARTITION)
    yield histogram(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Milliseconds of each sync of a file with batches.",
        [((), source.log_syncs)],
    )


def _groups(source: Source) -> Iterator[Metric]:
    groups = source.groups.all()
    counts = dict.fromkeys(GroupStatus, 0)
    for group in groups:
        counts[group.state] += 1
    yield gauge(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "Groups that this broker coordinates, by state.",
        [((status.value,), count) for status, count in counts.items()],
        ("state",),
    )
    yield gauge(
        "kafka_consumergroup_members",
        "Members of each group that this broker coordinates.",
        [((group.name,), len(group.members)) for group in groups],
        ("consumergroup",),
    )
    yield gauge(
        "kafka_consumergroup_current_offset",
        "The committed offset of each group that this broker coordinates.",
        [
            ((group.name, tp.topic, str(tp.partition)), committed.offset)
            for group in groups
            for tp in group.offsets
            if (committed := group.offsets.get(tp)) is not None
        ],
        ("consumergroup", *_PARTITION),
    )
