"""ApiVersions (API 18), v0-v3: the versions in the table of handlers.

A request of a newer version is answered in v0 with UNSUPPORTED_VERSION and the full list, so that
the client can choose a served version in one step (KIP-511). The client's name and version are
checked as KIP-511 prescribes.
"""

import re

from broker_impl.api.registry import APIS, RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.api_versions_request import ApiVersionsRequest
from broker_impl.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse

API_VERSIONS = 18
_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(API_VERSIONS, range(4))
def api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return every API that this listener serves, with its versions."""
    error = ErrorCode.NONE
    if context.version >= 3 and not (
        _NAME.fullmatch(request.client_software_name)
        and _NAME.fullmatch(request.client_software_version)
    ):
        error = ErrorCode.INVALID_REQUEST
    return advertise(context, error)


def advertise(context: RequestContext, error: ErrorCode) -> ApiVersionsResponse:
    """Return the list of APIs; it also answers, in v0, a request of an unsupported version."""
    is_private = context.listener == context.services.config.inter_broker_listener()
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersion(
                api_key=row.key,
                min_version=row.advertised.start,
                max_version=row.advertised.stop - 1,
            )
            for row in sorted(APIS.values(), key=lambda row: row.key)
            if is_private or not row.between_brokers
        ],
    )
