"""The handlers that create, renew, expire and list delegation tokens."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.audit.details import portions
from ottla.broker.login.tokens import DelegationTokens, require_tokens
from ottla.broker.requests.auditing import AdminChange, Need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, free
from ottla.broker.requests.request import RequestContext
from ottla.network.connection import Connection
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.tokens import DelegationToken, check_count, check_principals, new_token_id
from ottla.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    TokenPrincipal,
)

_FINGERPRINT_DIGITS = 16


def may_ask(client: Connection) -> bool:
    """Return whether the client may send requests about tokens.

    The client must be authenticated, and not by a token; otherwise a token could create further
    tokens.
    """
    return not client.by_token and client.principal != ANONYMOUS


def require_identity(request: RequestContext) -> None:
    """Raise OttlaError(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED) unless `may_ask` allows it."""
    if not may_ask(request.connection):
        raise OttlaError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "requests about delegation tokens need a login by SASL without a token, or a client "
            "certificate",
        )


def token_change(secret: bytes, detail: Mapping[str, object], code: int) -> AdminChange:
    """Return the audit event for renewing or expiring a token, whether it succeeded or not."""
    need = Need(AclOperation.ALTER, AclResource.DELEGATION_TOKEN, fingerprint(secret))
    return AdminChange(
        (need,), {} if code else detail, code, rule="owner and renewers of the token may"
    )


def fingerprint(secret: bytes) -> str:
    """Return a fingerprint that identifies a token in audit lines without its secret."""
    return hashlib.sha256(secret).hexdigest()[:_FINGERPRINT_DIGITS]


_NO_TIME = -1


def _create_needs(check: RequestCheck[CreateDelegationTokenRequest]) -> DeniedAnswer | None:
    """Require CREATE_TOKENS on the owner if the token is for a user other than the requester."""
    requester = check.access.principal
    owner = _owner(check.body, requester)
    if owner == requester or not may_ask(check.request.connection):
        # The handler refuses a client that may not request tokens.
        return None
    code = check.code(AclOperation.CREATE_TOKENS, AclResource.USER, str(owner))
    return None if code is None else DeniedAnswer(_not_made(code, owner, requester))


def _create_changes(
    body: CreateDelegationTokenRequest, response: CreateDelegationTokenResponse
) -> Iterator[AdminChange]:
    """Return the audit event: the token's id, its fingerprint for later events, its renewers."""
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
    """Return the requested owner of the token, or by default the requester."""
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
    """CreateDelegationToken (38): creates a token with which clients log in as its owner.

    The requester must be authenticated, and not by a token (KIP-48). The owner may be another user
    (KIP-373).
    """

    api = Api(
        CreateDelegationTokenRequest,
        CreateDelegationTokenResponse,
        Versions(1, 3),
        needs=_create_needs,
        changes=_create_changes,
        fewer_elements_max=4_000,
    )

    tokens: DelegationTokens | None

    async def handle(
        self, request: RequestContext, body: CreateDelegationTokenRequest
    ) -> CreateDelegationTokenResponse:
        """Create the token. An error response also contains owner and requester."""
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
        """Return the response for an error; it has no token."""
        unnamed = Principal("", "")
        return _not_made(code, _owner(body, unnamed), unnamed)


def _renew_changes(
    body: RenewDelegationTokenRequest, response: RenewDelegationTokenResponse
) -> Iterator[AdminChange]:
    """Return the audit event."""
    detail = {"renewed_until": response.expiry_timestamp_ms}
    yield token_change(body.hmac, detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class RenewDelegationToken(Handler):
    """RenewDelegationToken (39), versions 1-2: extends a token's validity, within its lifetime.

    The token's owner and its renewers may do this (KIP-48).
    """

    api = Api(
        RenewDelegationTokenRequest,
        RenewDelegationTokenResponse,
        Versions(1, 2),
        needs=free,
        changes=_renew_changes,
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


def _expire_changes(
    body: ExpireDelegationTokenRequest, response: ExpireDelegationTokenResponse
) -> Iterator[AdminChange]:
    """Return the audit event."""
    detail = {"ends": response.expiry_timestamp_ms, "removed": body.expiry_time_period_ms < 0}
    yield token_change(body.hmac, detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class ExpireDelegationToken(Handler):
    """ExpireDelegationToken (40), versions 1-2: sets when a token expires, or removes it.

    The token's owner and its renewers may do this (KIP-48).
    """

    api = Api(
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
        Versions(1, 2),
        needs=free,
        changes=_expire_changes,
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


def _describe_needs(
    check: RequestCheck[DescribeDelegationTokenRequest],
) -> Amend[DescribeDelegationTokenResponse]:
    """Show a token of another user only with DESCRIBE on it or DESCRIBE_TOKENS on its owner."""
    principal = check.access.principal

    def is_shown(token: DescribedDelegationToken) -> bool:
        owner = Principal(token.principal_type, token.principal_name)
        requester = Principal(
            token.token_requester_principal_type, token.token_requester_principal_name
        )
        renewers = (Principal(one.principal_type, one.principal_name) for one in token.renewers)
        return (
            principal in (owner, requester, *renewers)
            or check.sees(AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, token.token_id)
            or check.sees(AclOperation.DESCRIBE_TOKENS, AclResource.USER, str(owner))
        )

    def amend(response: DescribeDelegationTokenResponse) -> None:
        response.tokens = [token for token in response.tokens if is_shown(token)]

    return amend


@dataclass(slots=True, eq=False, repr=False)
class DescribeDelegationToken(Handler):
    """DescribeDelegationToken (41), versions 1-3: lists tokens with their HMACs.

    `_describe_needs` removes the tokens that the client may not see.
    """

    api = Api(
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
        Versions(1, 3),
        needs=_describe_needs,
    )

    tokens: DelegationTokens | None

    def handle(
        self, request: RequestContext, body: DescribeDelegationTokenRequest
    ) -> DescribeDelegationTokenResponse:
        """Return the tokens of the requested owners, or all tokens if the request names none."""
        require_identity(request)
        tokens = require_tokens(self.tokens)
        owners = (
            None
            if body.owners is None
            else {Principal(one.principal_type, one.principal_name) for one in body.owners}
        )
        return DescribeDelegationTokenResponse(
            tokens=[
                _described(token, tokens.hmac(token))
                for token in tokens.all()
                if owners is None or not owners.isdisjoint(token.concerned)
            ]
        )


def _described(token: DelegationToken, secret: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=secret,
        renewers=[
            TokenPrincipal(principal_type=one.type, principal_name=one.name)
            for one in token.renewers
        ],
    )
