"""DescribeCluster (API 60), v0: the controller and the brokers (KIP-700)."""

from broker_impl.api import operations
from broker_impl.api.registry import RequestContext, api
from broker_impl.wire.messages.describe_cluster_request import DescribeClusterRequest
from broker_impl.wire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)


@api(60, range(1))
def describe_cluster(
    context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Return the controller and the brokers, with their endpoints for this listener's clients."""
    view = context.services.view
    reachable = {
        broker.id: broker
        for broker in view.brokers.values()
        if context.listener in broker.endpoints
    }
    response = DescribeClusterResponse(
        cluster_id=context.services.cluster_id,
        controller_id=view.controller_id if view.controller_id in reachable else -1,
        brokers=[
            DescribeClusterBroker(
                number, *reachable[number].endpoints[context.listener], reachable[number].rack
            )
            for number in sorted(reachable)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations.ON_THE_CLUSTER
    return response
