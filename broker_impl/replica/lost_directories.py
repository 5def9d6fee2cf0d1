"""Replicas whose data directory has failed, while the broker goes on with others (KIP-112)."""

from broker_impl.log.directory import LogDirectory
from broker_impl.replica import controller_orders
from broker_impl.replica.hosted import HostedReplicas


def lose(hosted: HostedReplicas, directory: LogDirectory) -> None:
    """Take the replicas in a failed directory offline.

    They answer KAFKA_STORAGE_ERROR to clients, followers and the controller until the broker starts
    again. Their files stay as they are.
    """
    for tp in hosted.logs.give_up(directory):
        hosted.offline[tp] = None
        partition = hosted.partitions.get(tp)
        if partition is not None:
            controller_orders.end(hosted, partition)
            del hosted.partitions[tp]
