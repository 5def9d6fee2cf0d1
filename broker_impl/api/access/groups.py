"""Guards of requests about groups and committed offsets."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from broker_impl.api.access.guard import (
    Call,
    Check,
    Guard,
    Parts,
    all_denied,
    divided,
    filtered,
    in_parts,
    then,
)
from broker_impl.errors import ErrorCode
from broker_impl.security.acls import Operation
from broker_impl.wire.messages import (
    delete_groups_response,
    describe_groups_response,
    find_coordinator_response,
    heartbeat_response,
    join_group_response,
    leave_group_response,
    offset_commit_response,
    offset_delete_response,
    offset_fetch_response,
    sync_group_response,
)

_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP, _TRANSACTION = 0, 1
_GROUPS_SINCE: Final = 8
"""The first version of OffsetFetch whose requests name several groups."""
_KEYS_SINCE: Final = 4
"""The first version of FindCoordinator whose requests have several keys."""


def _reading(response: Callable[..., Any]) -> Guard:
    """Return the guard of a request of a group's member: READ on the group."""

    def guard(check: Check, request: Any, call: Call) -> Any:
        if check.group(Operation.READ, request.group_id):
            return call(request)
        return response(error_code=_DENIED)

    return guard


join_group: Final = _reading(join_group_response.JoinGroupResponse)
sync_group: Final = _reading(sync_group_response.SyncGroupResponse)
heartbeat: Final = _reading(heartbeat_response.HeartbeatResponse)
leave_group: Final = _reading(leave_group_response.LeaveGroupResponse)


def offset_commit(check: Check, request: Any, call: Call) -> Any:
    """READ on the group and on each topic."""
    if not check.group(Operation.READ, request.group_id):
        return all_denied(request, _committed(_DENIED))
    return in_parts(request, _committed(_TOPIC_DENIED), partial(check.topic, Operation.READ), call)


def _committed(error: ErrorCode) -> Parts:
    def denied(topic: Any) -> offset_commit_response.OffsetCommitResponseTopic:
        return offset_commit_response.OffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                offset_commit_response.OffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=error
                )
                for each in topic.partitions
            ],
        )

    response = offset_commit_response.OffsetCommitResponse
    return Parts("topics", "name", "topics", response, denied)


def offset_fetch(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on each group and on each topic; topics that are not named are left out."""
    if check.context.version >= _GROUPS_SINCE:
        return _offset_fetch_of_groups(check, request, call)
    if not check.group(Operation.DESCRIBE, request.group_id):
        return _denied_fetch(check, request)
    may = partial(check.topic, Operation.DESCRIBE)
    if request.topics is None:
        return then(
            call(request),
            lambda answer: filtered(answer, "topics", lambda topic: may(topic.name)),
        )
    response = offset_fetch_response.OffsetFetchResponse
    parts = Parts("topics", "name", "topics", response, partial(_unfetched, error=_TOPIC_DENIED))
    return in_parts(request, parts, may, call)


def _denied_fetch(check: Check, request: Any) -> offset_fetch_response.OffsetFetchResponse:
    if check.context.version >= 2:
        return offset_fetch_response.OffsetFetchResponse(error_code=_DENIED)
    rows = [_unfetched(topic, error=_DENIED) for topic in request.topics or ()]
    return offset_fetch_response.OffsetFetchResponse(topics=rows)


def _unfetched(topic: Any, *, error: ErrorCode) -> offset_fetch_response.OffsetFetchResponseTopic:
    return offset_fetch_response.OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            offset_fetch_response.OffsetFetchResponsePartition(
                partition_index=number, committed_offset=-1, error_code=error
            )
            for number in topic.partition_indexes
        ],
    )


def _offset_fetch_of_groups(check: Check, request: Any, call: Call) -> Any:
    may = partial(check.topic, Operation.DESCRIBE)
    unseen: dict[str, list[Any]] = {}
    groups = []
    for group in request.groups:
        if group.topics is None or not check.group(Operation.DESCRIBE, group.group_id):
            groups.append(group)
            continue
        seen, unseen[group.group_id] = divided(group.topics, lambda topic: may(topic.name))
        groups.append(msgspec.structs.replace(group, topics=seen))

    def completed(answer: Any) -> Any:
        for group in answer.groups:
            group.topics = [topic for topic in group.topics if may(topic.name)]
            if not group.error_code:
                group.topics += map(_unfetched_of_group, unseen.get(group.group_id, ()))
        return answer

    def denied(group: Any) -> offset_fetch_response.OffsetFetchResponseGroup:
        return offset_fetch_response.OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=_DENIED
        )

    response = offset_fetch_response.OffsetFetchResponse
    parts = Parts("groups", "group_id", "groups", response, denied)
    rest = msgspec.structs.replace(request, groups=groups)
    answer = in_parts(rest, parts, partial(check.group, Operation.DESCRIBE), call)
    return then(answer, completed)


def _unfetched_of_group(topic: Any) -> offset_fetch_response.OffsetFetchResponseTopics:
    return offset_fetch_response.OffsetFetchResponseTopics(
        name=topic.name,
        partitions=[
            offset_fetch_response.OffsetFetchResponsePartitions(
                partition_index=number, committed_offset=-1, error_code=_TOPIC_DENIED
            )
            for number in topic.partition_indexes
        ],
    )


def find_coordinator(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on each group or transactional id."""
    is_group = request.key_type == _GROUP
    may = partial(check.group if is_group else check.transactional_id, Operation.DESCRIBE)
    error = _DENIED if is_group else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    nowhere: dict[str, Any] = {
        "error_code": error,
        "error_message": None,
        "node_id": -1,
        "port": -1,
    }
    response = find_coordinator_response.FindCoordinatorResponse
    if request.key_type not in (_GROUP, _TRANSACTION):
        return call(request)
    if check.context.version < _KEYS_SINCE:
        return call(request) if may(request.key) else response(**nowhere)

    def denied(key: str) -> find_coordinator_response.Coordinator:
        return find_coordinator_response.Coordinator(key=key, **nowhere)

    return in_parts(
        request, Parts("coordinator_keys", "", "coordinators", response, denied), may, call
    )


def describe_groups(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on each group."""

    def denied(group: str) -> describe_groups_response.DescribedGroup:
        return describe_groups_response.DescribedGroup(group_id=group, error_code=_DENIED)

    def permitted(answer: Any) -> Any:
        for group in answer.groups:
            group.authorized_operations = check.permitted(
                group.authorized_operations,
                lambda each, name=group.group_id: check.group(each, name),  # type: ignore[misc]
            )
        return answer

    response = describe_groups_response.DescribeGroupsResponse
    parts = Parts("groups", "", "groups", response, denied)
    answer = in_parts(request, parts, partial(check.group, Operation.DESCRIBE), call)
    return then(answer, permitted)


def list_groups(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on the cluster for all groups, or else on each group that is listed."""
    if check.cluster(Operation.DESCRIBE):
        return call(request)
    return then(
        call(request),
        lambda answer: filtered(
            answer, "groups", lambda group: check.group(Operation.DESCRIBE, group.group_id)
        ),
    )


def delete_groups(check: Check, request: Any, call: Call) -> Any:
    """DELETE on each group."""

    def denied(group: str) -> delete_groups_response.DeletableGroupResult:
        return delete_groups_response.DeletableGroupResult(group_id=group, error_code=_DENIED)

    response = delete_groups_response.DeleteGroupsResponse
    parts = Parts("groups_names", "", "results", response, denied)
    return in_parts(request, parts, partial(check.group, Operation.DELETE), call)


def offset_delete(check: Check, request: Any, call: Call) -> Any:
    """DELETE on the group and READ on each topic."""
    response = offset_delete_response.OffsetDeleteResponse
    if not check.group(Operation.DELETE, request.group_id):
        return response(error_code=_DENIED)

    def denied(topic: Any) -> offset_delete_response.OffsetDeleteResponseTopic:
        return offset_delete_response.OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                offset_delete_response.OffsetDeleteResponsePartition(
                    partition_index=each.partition_index, error_code=_TOPIC_DENIED
                )
                for each in topic.partitions
            ],
        )

    parts = Parts("topics", "name", "topics", response, denied)
    return in_parts(request, parts, partial(check.topic, Operation.READ), call)
