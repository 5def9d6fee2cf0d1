"""DescribeAcls, CreateAcls and DeleteAcls (APIs 29 to 31), v0-v2: the ACLs of Kafka's authorizer.

Without ``authorizer.class.name`` the error is SECURITY_DISABLED.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, TypeVar

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.security.acls import (
    CLUSTER_NAME,
    Binding,
    Entry,
    Filter,
    Operation,
    Pattern,
    Permission,
    Resource,
    ResourceType,
)
from broker_impl.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from broker_impl.wire.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from broker_impl.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from broker_impl.wire.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from broker_impl.wire.messages.describe_acls_request import DescribeAclsRequest
from broker_impl.wire.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_DISABLED: Final = "No Authorizer is configured on the broker"
_PATTERNS_SINCE: Final = 1
"""The first version with patterns; before, every name is literal."""


@api(29, range(3))
def describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the entries that a filter means."""
    authorizer = context.services.security.authorizer
    if authorizer is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=_DISABLED)
    try:
        wanted = _filter(request, request.pattern_type_filter, context.version)
    except ApiError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    rows: dict[Resource, DescribeAclsResource] = {}
    for binding in authorizer.acls.bindings():
        if _is_visible(binding, context.version) and wanted.matches(binding):
            resource, entry = binding
            if resource not in rows:
                rows[resource] = DescribeAclsResource(*resource[:2], resource.pattern)
            rows[resource].acls.append(AclDescription(*entry))
    return DescribeAclsResponse(error_message=None, resources=list(rows.values()))


@api(30, range(3))
async def create_acls(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Add entries; an invalid one does not stop the others."""
    security = context.services.security
    results = []
    for row in request.creations:
        result = AclCreationResult(error_message=None)
        try:
            if security.authorizer is None:
                raise ApiError(ErrorCode.SECURITY_DISABLED, _DISABLED)
            await security.add_acls([_binding(row)])
        except ApiError as error:
            result = AclCreationResult(error_code=error.code, error_message=error.message)
        results.append(result)
    return CreateAclsResponse(results=results)


@api(31, range(3))
async def delete_acls(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Remove the entries that each filter means, and return them."""
    security = context.services.security
    results = []
    for row in request.filters:
        try:
            if security.authorizer is None:
                raise ApiError(ErrorCode.SECURITY_DISABLED, _DISABLED)
            wanted = _filter(row, row.pattern_type_filter, context.version)
            removed = await security.remove_acls(wanted)
        except ApiError as error:
            results.append(
                DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
            )
        else:
            results.append(DeleteAclsFilterResult(error_message=None, matching_acls=_rows(removed)))
    return DeleteAclsResponse(filter_results=results)


def _rows(removed: Iterable[Binding]) -> list[DeleteAclsMatchingAcl]:
    return [
        DeleteAclsMatchingAcl(
            error_message=None,
            resource_type=resource.type,
            resource_name=resource.name,
            pattern_type=resource.pattern,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for resource, entry in removed
    ]


def _is_visible(binding: Binding, version: int) -> bool:
    """Whether a response of this version can describe the binding."""
    return version >= _PATTERNS_SINCE or binding.resource.pattern is Pattern.LITERAL


Number = TypeVar("Number", bound=IntEnum)


def _known(kind: type[Number], value: int) -> Number:
    try:
        return kind(value)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{kind.__name__} {value} is unknown") from None


def _filter(row: DescribeAclsRequest | DeleteAclsFilter, pattern: int, version: int) -> Filter:
    """Return the filter of a request; ApiError if a value is unknown."""
    return Filter(
        _known(ResourceType, row.resource_type_filter),
        row.resource_name_filter,
        _known(Pattern, pattern) if version >= _PATTERNS_SINCE else Pattern.LITERAL,
        row.principal_filter,
        row.host_filter,
        _known(Operation, row.operation),
        _known(Permission, row.permission_type),
    )


def _binding(row: AclCreation) -> Binding:
    """Return the binding that a request creates; ApiError if Kafka would refuse it."""
    resource = Resource(
        _known(ResourceType, row.resource_type),
        row.resource_name,
        _known(Pattern, row.resource_pattern_type),
    )
    entry = Entry(
        row.principal,
        row.host,
        _known(Operation, row.operation),
        _known(Permission, row.permission_type),
    )
    is_vague = (
        resource.type is ResourceType.ANY
        or resource.pattern not in (Pattern.LITERAL, Pattern.PREFIXED)
        or entry.operation is Operation.ANY
        or entry.permission is Permission.ANY
    )
    if is_vague:
        raise ApiError(ErrorCode.INVALID_REQUEST, "ANY and MATCH are for filters only")
    if resource.type is ResourceType.CLUSTER and resource.name != CLUSTER_NAME:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the only name of the cluster is {CLUSTER_NAME}")
    kind, colon, name = row.principal.partition(":")
    if not (kind and colon and name):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a principal must be written as TYPE:NAME")
    if not resource.name or "/" in resource.name:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "the name of a resource must not be empty or have a slash"
        )
    return Binding(resource, entry)
