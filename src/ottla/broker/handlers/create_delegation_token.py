"""CreateDelegationToken (38), versions 1-3: makes a token by which clients log in as its owner.

The client that asks must have proven who it is, and not by a token (KIP-48); the owner may be
another user (KIP-373).
"""

from dataclasses import dataclass

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.tokens import not_made, owner_of, require_identity
from ottla.broker.login.tokens import DelegationTokens, require_tokens
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.security.principal import Principal
from ottla.security.tokens import check_count, check_principals, new_token_id
from ottla.wire.api import ApiKey
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class CreateDelegationToken(Handler):
    """Serves CreateDelegationToken."""

    api = ApiKey.CREATE_DELEGATION_TOKEN
    versions = Versions(1, 3)

    tokens: DelegationTokens | None

    async def handle(
        self, request: RequestContext, body: CreateDelegationTokenRequest
    ) -> CreateDelegationTokenResponse:
        """Make the token. Errors name owner and requester, too."""
        requester = request.connection.principal
        owner = owner_of(body, requester)
        renewers = [Principal(one.principal_type, one.principal_name) for one in body.renewers]
        try:
            require_identity(request)
            check_principals(owner, renewers)
            tokens = require_tokens(self.tokens)
            check_count(tokens.all(), requester)
        except OttlaError as error:
            return not_made(error.code, owner, requester)
        token_id = new_token_id(random_bytes)
        token = await tokens.create(token_id, owner, requester, renewers, body.max_lifetime_ms)
        return CreateDelegationTokenResponse(
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=token.issued_ms,
            expiry_timestamp_ms=token.expires_ms,
            max_timestamp_ms=token.max_ms,
            token_id=token.id,
            hmac=tokens.hmac(token),
        )

    @staticmethod
    def on_error(
        body: CreateDelegationTokenRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> CreateDelegationTokenResponse:
        """The error, and no token."""
        unnamed = Principal("", "")
        return not_made(code, owner_of(body, unnamed), unnamed)
