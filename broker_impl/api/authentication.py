"""SaslHandshake (API 17), v0-v1, and SaslAuthenticate (API 36), v0-v2: authentication by SASL.

The state of the connection (``broker_impl.security.sessions``) decides which of them is allowed.
After SaslHandshake v0, clients send tokens without request headers (``server.raw_tokens``).

Left out: GSSAPI, OAUTHBEARER, and delegation tokens.
"""

import asyncio
import logging
from typing import Final

from broker_impl.api.registry import RequestContext, api
from broker_impl.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from broker_impl.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from broker_impl.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from broker_impl.wire.messages.sasl_handshake_response import SaslHandshakeResponse

LOG = logging.getLogger(__name__)

_HANDSHAKE, _AUTHENTICATE = 17, 36
AUTHENTICATION: Final = frozenset({_HANDSHAKE, _AUTHENTICATE})
"""The APIs that change the authentication of a connection."""


@api(_HANDSHAKE, range(2))
def sasl_handshake(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Choose the mechanism of the authentication that follows."""
    error, mechanisms = context.session.handshake(request.mechanism, context.version)
    return SaslHandshakeResponse(error_code=error, mechanisms=list(mechanisms))


@api(_AUTHENTICATE, range(3))
async def sasl_authenticate(
    context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Process one token; a failure is answered after a delay, which slows down guessing."""
    session = context.session
    now = asyncio.get_running_loop().time()
    answer = session.token(bytes(request.auth_bytes), now)
    if session.is_failed:
        LOG.warning("listener %s: %s: %s", context.listener, context.client_address, answer.message)
        await asyncio.sleep(session.failure_delay_s)
    return SaslAuthenticateResponse(
        error_code=answer.error,
        error_message=answer.message,
        auth_bytes=answer.token,
        session_lifetime_ms=answer.lifetime_ms,
    )
