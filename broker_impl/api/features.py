"""UpdateFeatures (API 57), v0: no feature of this broker is versioned (KIP-584), as in Kafka 2.8.

Refuses: every feature, as Kafka refuses one that its brokers do not support.
"""

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.update_features_request import UpdateFeaturesRequest
from broker_impl.wire.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)

_UNKNOWN = "no broker supports this feature"


@api(57, range(1))
def update_features(
    context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """Refuse each feature by name; any broker can, because there is nothing to coordinate."""
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(row.feature, ErrorCode.INVALID_REQUEST, _UNKNOWN)
            for row in request.feature_updates
        ],
    )
