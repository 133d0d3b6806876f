"""ExpireDelegationToken (40), versions 1-2: sets when a token expires, or removes it.

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
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def _changes(
    body: ExpireDelegationTokenRequest, response: ExpireDelegationTokenResponse
) -> Iterator[AdminChange]:
    """Return the audit line."""
    detail = {"ends": response.expiry_timestamp_ms, "removed": body.expiry_time_period_ms < 0}
    yield token_change(body.hmac, detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class ExpireDelegationToken(Handler):
    """Serves ExpireDelegationToken."""

    api = Api(
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
        Versions(1, 2),
        needs=free,
        changes=_changes,
        on_error=lambda _body, code, _message: ExpireDelegationTokenResponse(
            error_code=code, expiry_timestamp_ms=-1
        ),
    )

    tokens: DelegationTokens | None

    async def handle(
        self, request: RequestContext, body: ExpireDelegationTokenRequest
    ) -> ExpireDelegationTokenResponse:
        """Return the token's new expiry time."""
        require_identity(request)
        tokens = require_tokens(self.tokens)
        principal = request.connection.principal
        end_ms = await tokens.expire(bytes(body.hmac), principal, body.expiry_time_period_ms)
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=end_ms)
