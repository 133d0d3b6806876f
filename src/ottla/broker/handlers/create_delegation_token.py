"""CreateDelegationToken (38), versions 1-3: creates a token with which clients log in as its owner.

The requesting client must be authenticated, and not by a token (KIP-48); the owner may be another
user (KIP-373).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.tokens import fingerprint, may_ask, require_identity
from ottla.broker.audit.details import portions
from ottla.broker.login.tokens import DelegationTokens, require_tokens
from ottla.broker.requests.auditing import AdminChange, Need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import DeniedAnswer
from ottla.broker.requests.request import RequestContext
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal
from ottla.security.tokens import check_count, check_principals, new_token_id
from ottla.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

_NO_TIME = -1


def _needs(check: RequestCheck[CreateDelegationTokenRequest]) -> DeniedAnswer | None:
    """Require CREATE_TOKENS on the owner, if the token is for another user."""
    requester = check.access.principal
    owner = _owner(check.body, requester)
    if owner == requester or not may_ask(check.request.connection):
        # The handler refuses clients that must not request tokens.
        return None
    code = check.code(AclOperation.CREATE_TOKENS, AclResource.USER, str(owner))
    return None if code is None else DeniedAnswer(_not_made(code, owner, requester))


def _changes(
    body: CreateDelegationTokenRequest, response: CreateDelegationTokenResponse
) -> Iterator[AdminChange]:
    """Return the audit line: the token's id, its fingerprint for later lines, its renewers."""
    owner = f"{response.principal_type}:{response.principal_name}"
    requester = (
        f"{response.token_requester_principal_type}:{response.token_requester_principal_name}"
    )
    renewers = (f"{one.principal_type}:{one.principal_name}" for one in body.renewers)
    detail: dict[str, object] = {"token": response.token_id}
    if not response.error_code:
        detail |= {"fingerprint": fingerprint(response.hmac), "ends": response.max_timestamp_ms}
    need = Need(AclOperation.CREATE_TOKENS, AclResource.USER, bounded(owner))
    rule = "a user's own tokens need no ACL" if owner == requester else ""
    for portion in portions((bounded(one), None) for one in renewers):
        line = {**detail, "renewers": list(portion)}
        yield AdminChange((need,), line, response.error_code, rule=rule)


def _owner(body: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return the requested owner of the token; by default, the requester."""
    if not body.owner_principal_name:
        return requester
    return Principal(body.owner_principal_type or "", body.owner_principal_name)


def _not_made(
    code: ErrorCode, owner: Principal, requester: Principal
) -> CreateDelegationTokenResponse:
    """Return the response if no token is created."""
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )


@dataclass(slots=True, eq=False, repr=False)
class CreateDelegationToken(Handler):
    """Serves CreateDelegationToken."""

    api = Api(
        CreateDelegationTokenRequest,
        CreateDelegationTokenResponse,
        Versions(1, 3),
        needs=_needs,
        changes=_changes,
        fewer_elements_max=4_000,
    )

    tokens: DelegationTokens | None

    async def handle(
        self, request: RequestContext, body: CreateDelegationTokenRequest
    ) -> CreateDelegationTokenResponse:
        """Create the token. Error responses contain owner and requester, too."""
        requester = request.connection.principal
        owner = _owner(body, requester)
        renewers = [Principal(one.principal_type, one.principal_name) for one in body.renewers]
        try:
            require_identity(request)
            check_principals(owner, renewers)
            tokens = require_tokens(self.tokens)
            check_count(tokens.all(), requester)
        except OttlaError as error:
            return _not_made(error.code, owner, requester)
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
        """Return the error, without a token."""
        unnamed = Principal("", "")
        return _not_made(code, _owner(body, unnamed), unnamed)
