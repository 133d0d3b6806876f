"""RenewDelegationToken (39), versions 1-2: extends a token's validity, within its lifetime.

Allowed for its owner and its renewers (KIP-48).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.broker.access.tokens import require_identity, token_change
from ottla.broker.login.tokens import DelegationTokens, require_tokens
from ottla.broker.requests.auditing import AdminChange
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import free
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.delegation_tokens import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def _changes(
    body: RenewDelegationTokenRequest, response: RenewDelegationTokenResponse
) -> Iterator[AdminChange]:
    """Return the audit line."""
    detail = {"renewed_until": response.expiry_timestamp_ms}
    yield token_change(body.hmac, detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class RenewDelegationToken(Handler):
    """Serves RenewDelegationToken."""

    api = Api(
        RenewDelegationTokenRequest,
        RenewDelegationTokenResponse,
        Versions(1, 2),
        needs=free,
        changes=_changes,
        on_error=lambda _body, code, _message: RenewDelegationTokenResponse(
            error_code=code, expiry_timestamp_ms=-1
        ),
    )

    tokens: DelegationTokens | None

    async def handle(
        self, request: RequestContext, body: RenewDelegationTokenRequest
    ) -> RenewDelegationTokenResponse:
        """Return the token's new expiry time."""
        require_identity(request)
        tokens = require_tokens(self.tokens)
        principal = request.connection.principal
        end_ms = await tokens.renew(bytes(body.hmac), principal, body.renew_period_ms)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=end_ms)
