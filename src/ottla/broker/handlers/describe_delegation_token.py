"""DescribeDelegationToken (41), versions 1-3: lists tokens with their HMACs.

`broker.access` leaves out the tokens that the client must not see.
"""

from dataclasses import dataclass

from ottla.broker.access.tokens import require_identity
from ottla.broker.login.tokens import DelegationTokens, require_tokens
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal
from ottla.security.tokens import DelegationToken
from ottla.wire.messages.delegation_tokens import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def _needs(
    check: RequestCheck[DescribeDelegationTokenRequest],
) -> Amend[DescribeDelegationTokenResponse]:
    """Show tokens of others only with DESCRIBE on the token, or DESCRIBE_TOKENS on its owner."""
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
    """Serves DescribeDelegationToken."""

    api = Api(
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
        Versions(1, 3),
        needs=_needs,
    )

    tokens: DelegationTokens | None

    def handle(
        self, request: RequestContext, body: DescribeDelegationTokenRequest
    ) -> DescribeDelegationTokenResponse:
        """Return the tokens that concern the requested owners.

        All tokens if the request names none.
        """
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
            DescribedDelegationTokenRenewer(principal_type=one.type, principal_name=one.name)
            for one in token.renewers
        ],
    )
