"""What requests for delegation tokens need (KIP-48, KIP-373)."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.check import RequestCheck
from ottla.broker.access.guards import Amend, DeniedAnswer
from ottla.broker.requests.request import RequestContext
from ottla.network.connection import Connection
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import ANONYMOUS, Principal
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)

_NO_TIME = -1


def may_ask(client: Connection) -> bool:
    """Whether the client may send requests about tokens.

    It must have proven who it is, and not by a token: else one token would make others for ever.
    """
    return not client.by_token and client.principal != ANONYMOUS


def require_identity(request: RequestContext) -> None:
    """Raises OttlaError(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED) where `may_ask` says no."""
    if not may_ask(request.connection):
        raise OttlaError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "requests about delegation tokens need a login by SASL without a token, or a client "
            "certificate",
        )


def owner_of(body: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Whose token is asked for: the requester's, unless it names another owner."""
    if not body.owner_principal_name:
        return requester
    return Principal(body.owner_principal_type or "", body.owner_principal_name)


def not_made(
    code: ErrorCode, owner: Principal, requester: Principal
) -> CreateDelegationTokenResponse:
    """The response where no token is made."""
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


def create(check: RequestCheck) -> DeniedAnswer | None:
    """CREATE_TOKENS on the user, where the token is to be another user's."""
    requester = check.access.principal
    owner = owner_of(check.body, requester)
    if owner == requester or not may_ask(check.request.connection):
        # The handler refuses clients that may not ask for tokens at all.
        return None
    code = check.code(AclOperation.CREATE_TOKENS, AclResource.USER, str(owner))
    return None if code is None else DeniedAnswer(not_made(code, owner, requester))


def describe(check: RequestCheck) -> Amend:
    """Of others' tokens, those that the client may DESCRIBE, or whose owner's it may see."""
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
