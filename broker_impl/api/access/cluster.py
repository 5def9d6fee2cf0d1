"""Guards of requests about the cluster, its settings and its security."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from broker_impl.api.access.guard import Call, Check, Guard, divided, extended, then
from broker_impl.errors import ErrorCode
from broker_impl.security.acls import Operation
from broker_impl.wire.messages import (
    alter_client_quotas_response,
    alter_configs_response,
    alter_partition_reassignments_response,
    alter_replica_log_dirs_response,
    alter_user_scram_credentials_response,
    controlled_shutdown_response,
    create_acls_response,
    delete_acls_response,
    describe_acls_response,
    describe_client_quotas_response,
    describe_configs_response,
    describe_log_dirs_response,
    describe_user_scram_credentials_response,
    elect_leaders_response,
    incremental_alter_configs_response,
    leader_and_isr_response,
    list_partition_reassignments_response,
    stop_replica_response,
    update_features_response,
    update_metadata_response,
)

_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_TOPIC: Final = 2
"""The type of resource that is a topic, in requests about settings."""
_FAILED: Final = "Authorization failed."


def open_to_all(check: Check, request: Any, call: Call) -> Any:
    """No right is needed."""
    return call(request)


def describe_cluster(check: Check, request: Any, call: Call) -> Any:
    """No right is needed; only the operations that the client may perform are returned."""

    def permitted(answer: Any) -> Any:
        answer.cluster_authorized_operations = check.permitted_of_cluster(
            answer.cluster_authorized_operations
        )
        return answer

    return then(call(request), permitted)


def _needs(operation: Operation, refusal: Callable[[Any], Any]) -> Guard:
    """Return the guard of a request that needs an operation on the cluster."""

    def guard(check: Check, request: Any, call: Call) -> Any:
        return call(request) if check.cluster(operation) else refusal(request)

    return guard


def _error(response: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda _: response(error_code=_DENIED)


leader_and_isr: Final = _needs(
    Operation.CLUSTER_ACTION, _error(leader_and_isr_response.LeaderAndIsrResponse)
)
stop_replica: Final = _needs(
    Operation.CLUSTER_ACTION, _error(stop_replica_response.StopReplicaResponse)
)
update_metadata: Final = _needs(
    Operation.CLUSTER_ACTION, _error(update_metadata_response.UpdateMetadataResponse)
)
controlled_shutdown: Final = _needs(
    Operation.CLUSTER_ACTION, _error(controlled_shutdown_response.ControlledShutdownResponse)
)


def elect_leaders(check: Check, request: Any, call: Call) -> Any:
    """ALTER on the cluster."""
    if check.cluster(Operation.ALTER):
        return call(request)
    rows = [
        elect_leaders_response.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                elect_leaders_response.PartitionResult(
                    partition_id=number, error_code=_DENIED, error_message=_FAILED
                )
                for number in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    error = _DENIED if check.context.version else ErrorCode.NONE  # v0 has no place for it
    return elect_leaders_response.ElectLeadersResponse(
        error_code=error, replica_election_results=rows
    )


alter_reassignments: Final = _needs(
    Operation.ALTER,
    _error(alter_partition_reassignments_response.AlterPartitionReassignmentsResponse),
)
list_reassignments: Final = _needs(
    Operation.DESCRIBE,
    _error(list_partition_reassignments_response.ListPartitionReassignmentsResponse),
)
describe_log_dirs: Final = _needs(
    Operation.DESCRIBE, _error(describe_log_dirs_response.DescribeLogDirsResponse)
)
update_features: Final = _needs(
    Operation.ALTER, _error(update_features_response.UpdateFeaturesResponse)
)


def alter_replica_log_dirs(check: Check, request: Any, call: Call) -> Any:
    """ALTER on the cluster."""
    if check.cluster(Operation.ALTER):
        return call(request)
    return alter_replica_log_dirs_response.AlterReplicaLogDirsResponse(
        results=[
            alter_replica_log_dirs_response.AlterReplicaLogDirTopicResult(
                topic.name,
                [
                    alter_replica_log_dirs_response.AlterReplicaLogDirPartitionResult(
                        number, _DENIED
                    )
                    for number in topic.partitions
                ],
            )
            for wanted in request.dirs
            for topic in wanted.topics
        ]
    )


describe_acls: Final = _needs(
    Operation.DESCRIBE, _error(describe_acls_response.DescribeAclsResponse)
)
describe_scram: Final = _needs(
    Operation.DESCRIBE,
    _error(describe_user_scram_credentials_response.DescribeUserScramCredentialsResponse),
)


def _no_quota_altered(request: Any) -> alter_client_quotas_response.AlterClientQuotasResponse:
    return alter_client_quotas_response.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas_response.EntryData(
                _DENIED,
                _FAILED,
                [
                    alter_client_quotas_response.EntityData(each.entity_type, each.entity_name)
                    for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


describe_quotas: Final = _needs(
    Operation.DESCRIBE_CONFIGS,
    lambda _: describe_client_quotas_response.DescribeClientQuotasResponse(
        error_code=_DENIED, error_message=_FAILED, entries=None
    ),
)
alter_quotas: Final = _needs(Operation.ALTER_CONFIGS, _no_quota_altered)


def _no_acl_created(request: Any) -> create_acls_response.CreateAclsResponse:
    denied = create_acls_response.AclCreationResult(error_code=_DENIED, error_message=_FAILED)
    return create_acls_response.CreateAclsResponse(results=[denied for _ in request.creations])


def _no_acl_deleted(request: Any) -> delete_acls_response.DeleteAclsResponse:
    denied = delete_acls_response.DeleteAclsFilterResult(error_code=_DENIED, error_message=_FAILED)
    return delete_acls_response.DeleteAclsResponse(filter_results=[denied for _ in request.filters])


def _no_user_altered(
    request: Any,
) -> alter_user_scram_credentials_response.AlterUserScramCredentialsResponse:
    users = dict.fromkeys(row.name for row in [*request.deletions, *request.upsertions])
    return alter_user_scram_credentials_response.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials_response.AlterUserScramCredentialsResult(
                user=user, error_code=_DENIED, error_message=_FAILED
            )
            for user in users
        ]
    )


create_acls: Final = _needs(Operation.ALTER, _no_acl_created)
delete_acls: Final = _needs(Operation.ALTER, _no_acl_deleted)
alter_scram: Final = _needs(Operation.ALTER, _no_user_altered)


def _of_settings(operation: Operation, answered: str, response: Any, result: Any) -> Guard:
    """Return the guard of a request about settings of topics and brokers."""

    def denied(resource: Any) -> Any:
        return result(
            error_code=_TOPIC_DENIED if resource.resource_type == _TOPIC else _DENIED,
            error_message=_FAILED,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    def guard(check: Check, request: Any, call: Call) -> Any:
        def may(row: Any) -> bool:
            if row.resource_type == _TOPIC:
                return check.topic(operation, row.resource_name)
            return check.cluster(operation)

        allowed, others = divided(request.resources, may)
        if not others:
            return call(request)
        refused = [denied(row) for row in others]
        rest = msgspec.structs.replace(request, resources=allowed)
        answer = call(rest) if allowed else response()
        return then(answer, lambda done: extended(done, answered, refused))

    return guard


describe_configs: Final = _of_settings(
    Operation.DESCRIBE_CONFIGS,
    "results",
    describe_configs_response.DescribeConfigsResponse,
    describe_configs_response.DescribeConfigsResult,
)
alter_configs: Final = _of_settings(
    Operation.ALTER_CONFIGS,
    "responses",
    alter_configs_response.AlterConfigsResponse,
    alter_configs_response.AlterConfigsResourceResponse,
)
incremental_alter_configs: Final = _of_settings(
    Operation.ALTER_CONFIGS,
    "responses",
    incremental_alter_configs_response.IncrementalAlterConfigsResponse,
    incremental_alter_configs_response.AlterConfigsResourceResponse,
)
