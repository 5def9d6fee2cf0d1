"""DescribeClientQuotas (API 48), v0-v1, and AlterClientQuotas (API 49), v0-v1 (KIP-546).

Quotas are stored in ZooKeeper as Kafka stores them; any broker accepts a change, and the others
read it shortly after the response.

Refuses: other entities than users and client ids, quotas that are not positive, quotas in bytes
that are not whole numbers (Kafka accepts a quota of zero or less, by which no request would ever
end).

Left out: quotas of addresses for the rate of new connections (KIP-612). A quota of changes to
topics (`controller_mutation_rate`, KIP-599) is stored and has no effect.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from broker_impl.api.quotas import entities
from broker_impl.api.quotas.entities import Entity
from broker_impl.api.quotas.limits import MUTATIONS, Kind
from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.messages import (
    alter_client_quotas_response,
    describe_client_quotas_response,
)
from broker_impl.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from broker_impl.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from broker_impl.wire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from broker_impl.wire.messages.describe_client_quotas_response import DescribeClientQuotasResponse

USER, CLIENT_ID = "user", "client-id"
EXACT, DEFAULT, ANY = range(3)
"""How a component of a filter matches a name."""
_IN_BYTES: Final = (Kind.PRODUCED, Kind.CONSUMED)
_KEYS: Final = (*Kind, MUTATIONS)
_EPSILON: Final = 1e-6


@api(48, range(2))
async def describe_client_quotas(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Return the quotas of all entities that the filter matches."""
    try:
        components = _components(request.components)
        quotas = await context.services.quotas.describe()
    except ApiError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
    entries = [
        describe_client_quotas_response.EntryData(
            [
                describe_client_quotas_response.EntityData(kind, entities.decoded(name))
                for kind, name in ((USER, entity.user), (CLIENT_ID, entity.client_id))
                if name is not None
            ],
            [
                describe_client_quotas_response.ValueData(key, value)
                for key, value in values.items()
            ],
        )
        for entity, values in quotas.items()
        if _matches(components.get(USER), entity.user, strict=request.strict)
        and _matches(components.get(CLIENT_ID), entity.client_id, strict=request.strict)
    ]
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _components(rows: Iterable[ComponentData]) -> dict[str, ComponentData]:
    """The components of a filter by type; ApiError if one occurs twice or is unknown."""
    found: dict[str, ComponentData] = {}
    for row in rows:
        if row.entity_type in found:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"the filter has two components {row.entity_type}"
            )
        if row.entity_type not in (USER, CLIENT_ID):
            code = ErrorCode.UNSUPPORTED_VERSION if row.entity_type else ErrorCode.INVALID_REQUEST
            raise ApiError(code, f"entities of type {row.entity_type!r} are not supported")
        if row.match_type not in (EXACT, DEFAULT, ANY):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"match type {row.match_type} is unknown")
        found[row.entity_type] = row
    return found


def _matches(component: ComponentData | None, name: str | None, *, strict: bool) -> bool:
    """Whether a part of an entity matches; without a component, only ``strict`` excludes it."""
    if component is None:
        return name is None or not strict
    if component.match_type == ANY:
        return name is not None
    wanted = component.match if component.match_type == EXACT else None
    return name == entities.encoded(wanted)


@api(49, range(2))
async def alter_client_quotas(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Set or remove quotas of each entity; an entity with an invalid one is not changed."""
    rows = []
    for entry in request.entries:
        error = await _alter(context, entry, validate_only=request.validate_only)
        rows.append(
            alter_client_quotas_response.EntryData(
                error.code,
                error.message or None,
                [
                    alter_client_quotas_response.EntityData(row.entity_type, row.entity_name)
                    for row in entry.entity
                ],
            )
        )
    return AlterClientQuotasResponse(entries=rows)


async def _alter(context: RequestContext, entry: EntryData, *, validate_only: bool) -> ApiError:
    try:
        entity = _entity(entry.entity)
        changes = {op.key: None if op.remove else _text(op) for op in entry.ops}
        if not validate_only:
            await context.services.quotas.alter(entity, lambda current: _changed(current, changes))
    except ApiError as error:
        return error
    return ApiError(ErrorCode.NONE, "")


def _entity(rows: Iterable[EntityData]) -> Entity:
    names: dict[str, str] = {}
    for row in rows:
        if row.entity_type not in (USER, CLIENT_ID):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"entities of type {row.entity_type!r} have no quotas in this broker",
            )
        if row.entity_name == "":
            raise ApiError(ErrorCode.INVALID_REQUEST, f"a {row.entity_type} must have a name")
        if row.entity_type in names:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"two names of type {row.entity_type}")
        names[row.entity_type] = entities.encoded(row.entity_name)
    if not names:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a quota needs a user or a client id")
    return Entity(names.get(USER), names.get(CLIENT_ID))


def _text(op: OpData) -> str:
    """Return a quota as it is stored; ApiError if it is not valid."""
    if op.key not in _KEYS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no quota {op.key}")
    if not (op.value > 0 and math.isfinite(op.value)):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{op.key}={op.value}: must be greater than 0")
    if op.key not in _IN_BYTES:
        return str(op.value)
    if abs(op.value - int(op.value + _EPSILON)) > _EPSILON:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{op.key}={op.value}: must be a whole number")
    return str(int(op.value + _EPSILON))


def _changed(current: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The settings of an entity after a change; its other settings stay, such as credentials."""
    merged = {**current, **changes}
    return {key: value for key, value in merged.items() if value is not None}
