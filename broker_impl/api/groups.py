"""Consumer groups of the classic protocol: members, assignments, listing and deletion.

Served: JoinGroup (API 11) v0-v9, Heartbeat (12) v0-v4, LeaveGroup (13) v0-v5, SyncGroup (14) v0-v5,
DescribeGroups (15) v0-v5, ListGroups (16) v0-v4, DeleteGroups (42) v0-v2. Clients compute the
assignment (range, sticky, cooperative, …).

Refuses: session timeouts outside of group.min/max.session.timeout.ms, unknown members, former
generations, a static member that was replaced (KIP-345), new members of v4 and later without an id
(KIP-394).

Left out: groups of KIP-848 and their types (ListGroups v5), and DescribeGroups v6, which differs
only in the error for a group that does not exist.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from broker_impl.api import operations
from broker_impl.api.purgatory import resolve
from broker_impl.api.registry import RequestContext, api
from broker_impl.coordinator.groups import states
from broker_impl.coordinator.groups.events import (
    Delete,
    Heartbeat,
    Join,
    JoinAnswer,
    Leave,
    LeaveAnswer,
    Sync,
    SyncAnswer,
)
from broker_impl.coordinator.groups.members import GroupSnapshot
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.delete_groups_response import (
    DeletableGroupResult,
    DeleteGroupsResponse,
)
from broker_impl.wire.messages.describe_groups_request import DescribeGroupsRequest
from broker_impl.wire.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.heartbeat_response import HeartbeatResponse
from broker_impl.wire.messages.join_group_request import JoinGroupRequest
from broker_impl.wire.messages.join_group_response import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from broker_impl.wire.messages.leave_group_request import LeaveGroupRequest
from broker_impl.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from broker_impl.wire.messages.list_groups_request import ListGroupsRequest
from broker_impl.wire.messages.list_groups_response import ListedGroup, ListGroupsResponse
from broker_impl.wire.messages.sync_group_request import SyncGroupRequest
from broker_impl.wire.messages.sync_group_response import SyncGroupResponse

_REQUIRES_ID_FROM = 4
_SKIPS_ASSIGNMENT_FROM = 9
_NAMES_PROTOCOL_TYPE_FROM = 7
_NAMES_PROTOCOL_FROM = 5
"""The version of SyncGroup from which members name the protocol of their group."""


@api(11, range(10))
def join_group(context: RequestContext, request: JoinGroupRequest) -> Any:
    """Join the next generation of the group.

    The response is sent once all members have joined.
    """
    groups = context.services.groups
    timeout_ms = request.rebalance_timeout_ms
    name = request.group_instance_id or context.client_id or ""

    def event(ticket: int) -> Join:
        return Join(
            ticket=ticket,
            member_id=request.member_id,
            fresh_id=groups.fresh_id(name),
            instance_id=request.group_instance_id,
            client_id=context.client_id or "",
            client_host=f"/{context.client_address}",
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((row.name, bytes(row.metadata)) for row in request.protocols),
            requires_id=context.version >= _REQUIRES_ID_FROM,
            may_skip_assignment=context.version >= _SKIPS_ASSIGNMENT_FROM,
        )

    def answer_as(answer: JoinAnswer) -> JoinGroupResponse:
        names_type = context.version >= _NAMES_PROTOCOL_TYPE_FROM
        return JoinGroupResponse(
            error_code=answer.error,
            generation_id=answer.generation,
            protocol_type=answer.protocol_type if names_type else None,
            protocol_name=answer.protocol if names_type else (answer.protocol or ""),
            leader=answer.leader,
            skip_assignment=answer.skip_assignment,
            member_id=answer.member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member_id, group_instance_id=instance_id, metadata=subscription
                )
                for member_id, instance_id, subscription in answer.members
            ],
        )

    return groups.ask(request.group_id, event, answer_as)


@api(14, range(6))
def sync_group(context: RequestContext, request: SyncGroupRequest) -> Any:
    """Return the member's assignment.

    The response is sent once the group leader has sent the assignments and they are stored. From v5
    on, the request must name the type and the name of the group's protocol (KIP-559).
    """
    is_named = request.protocol_type is not None and request.protocol_name is not None
    if context.version >= _NAMES_PROTOCOL_FROM and not is_named:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def event(ticket: int) -> Sync:
        return Sync(
            ticket=ticket,
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
            assignments={row.member_id: bytes(row.assignment) for row in request.assignments},
        )

    def answer_as(answer: SyncAnswer) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=answer.error,
            protocol_type=answer.protocol_type,
            protocol_name=answer.protocol,
            assignment=answer.assignment,
        )

    return context.services.groups.ask(request.group_id, event, answer_as)


@api(12, range(5))
def heartbeat(context: RequestContext, request: HeartbeatRequest) -> Any:
    """Keep the member's session alive; the response announces a rebalance."""

    def event(ticket: int) -> Heartbeat:
        return Heartbeat(
            ticket=ticket,
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
        )

    return context.services.groups.ask(
        request.group_id, event, lambda error: HeartbeatResponse(error_code=error)
    )


@api(13, range(6))
def leave_group(context: RequestContext, request: LeaveGroupRequest) -> Any:
    """Remove a member from the group; from v3 on, several at once."""
    members = tuple((member.member_id, member.group_instance_id) for member in request.members)
    if context.version < 3:
        members = ((request.member_id, None),)

    def answer_as(answer: LeaveAnswer) -> LeaveGroupResponse:
        if context.version < 3:
            error = answer.error or next((row[2] for row in answer.rows), ErrorCode.NONE)
            return LeaveGroupResponse(error_code=error)
        return LeaveGroupResponse(
            error_code=answer.error,
            members=[
                MemberResponse(member_id=member_id, group_instance_id=instance, error_code=error)
                for member_id, instance, error in answer.rows
            ],
        )

    return context.services.groups.ask(
        request.group_id, lambda ticket: Leave(ticket=ticket, members=members), answer_as
    )


@api(15, range(6))
def describe_groups(
    context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Return the state and the members of each group.

    For a group that does not exist, the state is Dead and there is no error.
    """
    groups = [_described(context, name) for name in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = operations.ON_GROUPS
    return DescribeGroupsResponse(groups=groups)


def _described(context: RequestContext, name: str) -> DescribedGroup:
    group = context.services.groups.find(name)
    if isinstance(group, ErrorCode):
        return DescribedGroup(error_code=group, group_id=name)
    if group is None:
        return DescribedGroup(group_id=name, group_state=states.GroupStatus.DEAD.value)
    shown = group.snapshot()
    return DescribedGroup(
        group_id=name,
        group_state=shown.state,
        protocol_type=shown.protocol_type,
        protocol_data=shown.protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.subscription,
                member_assignment=member.assignment,
            )
            for member in shown.members
        ],
    )


@api(16, range(5))
def list_groups(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Return the groups that this broker coordinates.

    If the request has a states filter, only groups in these states are returned. While a partition
    of ``__consumer_offsets`` is loading, the error is COORDINATOR_LOAD_IN_PROGRESS.
    """
    groups = context.services.groups
    if groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    wanted = {name.casefold() for name in request.states_filter}
    return ListGroupsResponse(
        groups=[
            _listed(shown, context.version)
            for shown in groups.snapshots()
            if not wanted or shown.state.casefold() in wanted
        ]
    )


def _listed(shown: GroupSnapshot, version: int) -> ListedGroup:
    return ListedGroup(
        group_id=shown.group,
        protocol_type=shown.protocol_type,
        group_state=shown.state if version >= 4 else "",
    )


@api(42, range(3))
def delete_groups(context: RequestContext, request: DeleteGroupsRequest) -> Any:
    """Delete groups without members, and their offsets."""
    names = list(dict.fromkeys(request.groups_names))
    answers = [
        context.services.groups.ask(name, lambda ticket: Delete(ticket=ticket), _itself)
        for name in names
    ]
    return when_all(
        answers,
        lambda errors: DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name, error_code=error)
                for name, error in zip(names, errors, strict=True)
            ]
        ),
    )


def _itself(answer: Any) -> Any:
    return answer


def when_all(answers: Sequence[Any], answer_as: Any) -> Any:
    """Combine several responses into one, which is a future if any of them is a future."""
    waiting = [answer for answer in answers if isinstance(answer, asyncio.Future)]
    if not waiting:
        return answer_as(answers)
    whole: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    left = len(waiting)

    def one_more(_: Any) -> None:
        nonlocal left
        left -= 1
        if not left and not whole.done():
            resolve(whole, combined)

    def combined() -> Any:
        return answer_as(
            [each.result() if isinstance(each, asyncio.Future) else each for each in answers]
        )

    for future in waiting:
        future.add_done_callback(one_more)
    return whole
