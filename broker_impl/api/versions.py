"""ApiVersions (API 18), v0-v3: the versions in the table of handlers.

A request of a newer version is answered in v0 with UNSUPPORTED_VERSION and the full list, so that
the client can choose a served version in one step (KIP-511). The client's name and version are
checked as KIP-511 prescribes.

With ``faultline.api.versions=2.8`` clients see no newer version of an API than Kafka 2.8 has, and
no newer API, so that those which infer the release of a broker infer this one.
"""

import re
from collections.abc import Mapping
from typing import Final

from broker_impl.api.registry import APIS, Api, RequestContext, api
from broker_impl.config import KAFKA_2_8, BrokerConfig
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.api_versions_request import ApiVersionsRequest
from broker_impl.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse

API_VERSIONS = 18
_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_KAFKA_2_8: Final = (
    "0:9 1:12 2:6 3:11 4:5 5:3 6:7 7:3 8:8 9:7 10:3 11:7 12:4 13:4 14:5 15:5 16:4 17:1 18:3 "
    "19:7 20:6 21:2 22:4 23:4 24:3 25:3 26:3 27:1 28:3 29:2 30:2 31:2 32:4 33:2 34:2 35:2 "
    "36:2 37:3 38:2 39:2 40:2 41:2 42:2 43:2 44:1 45:0 46:0 47:0 48:1 49:1 50:0 51:0 56:0 "
    "57:0 60:0 61:0"
)
NEWEST_OF_2_8: Final[Mapping[int, int]] = {
    int(key): int(newest) for key, _, newest in (row.partition(":") for row in _KAFKA_2_8.split())
}
"""The newest version of each API of a broker of Kafka 2.8 with ZooKeeper (``ApiKeys``)."""


def for_clients(row: Api, config: BrokerConfig) -> range:
    """Return the versions of an API that clients are offered; an empty range if it is not."""
    if config.faultline_api_versions != KAFKA_2_8:
        return row.advertised
    stop = NEWEST_OF_2_8.get(row.key, -1) + 1
    return range(row.advertised.start, min(row.advertised.stop, stop))


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
                min_version=versions.start,
                max_version=versions.stop - 1,
            )
            for row in sorted(APIS.values(), key=lambda row: row.key)
            if is_private or not row.between_brokers
            if (versions := for_clients(row, context.services.config))
        ],
    )
