"""Requests about delegation tokens (APIs 38-41, v0-v2), of which this broker has none (KIP-48).

They are CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and
DescribeDelegationToken. Each is answered as by a broker of Kafka without
``delegation.token.secret.key``: on a PLAINTEXT listener with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
on others with DELEGATION_TOKEN_AUTH_DISABLED.

Left out: delegation tokens.
"""

from typing import Any, Final

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from broker_impl.wire.messages.describe_delegation_token_response import (
    DescribeDelegationTokenResponse,
)
from broker_impl.wire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from broker_impl.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse

_VERSIONS: Final = range(3)


def _refusal(context: RequestContext) -> ErrorCode:
    config = context.services.config
    if config.has_tls(context.listener) or config.has_sasl(context.listener):
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@api(38, _VERSIONS)
def create_delegation_token(context: RequestContext, _: Any) -> CreateDelegationTokenResponse:
    """Refuse to create a token."""
    return CreateDelegationTokenResponse(error_code=_refusal(context))


@api(39, _VERSIONS)
def renew_delegation_token(context: RequestContext, _: Any) -> RenewDelegationTokenResponse:
    """Refuse to renew a token."""
    return RenewDelegationTokenResponse(error_code=_refusal(context))


@api(40, _VERSIONS)
def expire_delegation_token(context: RequestContext, _: Any) -> ExpireDelegationTokenResponse:
    """Refuse to expire a token."""
    return ExpireDelegationTokenResponse(error_code=_refusal(context))


@api(41, _VERSIONS)
def describe_delegation_token(context: RequestContext, _: Any) -> DescribeDelegationTokenResponse:
    """Refuse to describe tokens."""
    return DescribeDelegationTokenResponse(error_code=_refusal(context))
