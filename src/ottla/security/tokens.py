"""Delegation tokens: permissions to create, renew, expire and see them (KIP-48, KIP-373).

A core: errors have the codes of Kafka 4.3, and are checked in its order. A token's secret is its
HMAC. It is never stored, since every broker computes it from the token's id with the key in its
settings.
"""

import base64
import hmac
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.security.principal import USER, Principal

# Limited because all brokers keep all tokens, and every logged-in user may create some.
TOKENS_OF_REQUESTER_MAX = 10_000
NAMES_CHARACTERS_MAX = 16 << 10
_LONG_MAX = 2**63 - 1


class DelegationToken(NamedTuple):
    """A token; times are milliseconds since 1970."""

    id: str
    owner: Principal
    # The creator: a principal other than the owner needs an ACL for that.
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    # The latest possible expiry; renewals cannot extend it.
    max_ms: int
    # Invariant: it is not beyond max_ms.
    expires_ms: int

    @property
    def concerned(self) -> tuple[Principal, ...]:
        """Return the principals that see the token without an ACL."""
        return (self.owner, self.requester, *self.renewers)

    def is_over(self, now_ms: int) -> bool:
        """Whether the token has expired."""
        return self.max_ms < now_ms or self.expires_ms < now_ms


class TokenRules(NamedTuple):
    """The settings `delegation.token.max.lifetime.ms` and `delegation.token.expiry.time.ms`."""

    lifetime_ms_max: int
    renewal_ms_max: int

    def made(
        self,
        token_id: str,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        lifetime_ms: int,
        now_ms: int,
    ) -> DelegationToken:
        """Create a token; `lifetime_ms` of 0 or less means the longest one."""
        max_ms = _later(now_ms, _at_most(lifetime_ms, self.lifetime_ms_max))
        expires_ms = min(max_ms, _later(now_ms, self.renewal_ms_max))
        return DelegationToken(
            token_id, owner, requester, tuple(renewers), now_ms, max_ms, expires_ms
        )

    def renewed(
        self, token: DelegationToken, principal: Principal, period_ms: int, now_ms: int
    ) -> DelegationToken:
        """Return the token with a new expiry; a period of 0 or less means the longest one."""
        if token.is_over(now_ms):
            raise _expired(token)
        _check_may_change(token, principal)
        end_ms = _later(now_ms, _at_most(period_ms, self.renewal_ms_max))
        return token._replace(expires_ms=min(token.max_ms, end_ms))


def ended(
    token: DelegationToken, principal: Principal, period_ms: int, now_ms: int
) -> DelegationToken | None:
    """Return the token expiring after a period; None (removed at once) if the period is negative.

    The expiry may be later than before, as in Kafka, but not beyond the lifetime.
    """
    _check_may_change(token, principal)
    if period_ms < 0:
        return None
    if token.is_over(now_ms):
        raise _expired(token)
    return token._replace(expires_ms=min(token.max_ms, _later(now_ms, period_ms)))


def new_token_id(random_bytes: Callable[[int], bytes]) -> str:
    """Return an id in Kafka's format: 22 characters of URL-safe Base64, not starting with `-`."""
    while True:
        token_id = base64.urlsafe_b64encode(random_bytes(16)).decode().rstrip("=")
        if not token_id.startswith("-"):
            return token_id


def token_hmac(key: str, token_id: str) -> bytes:
    """Return the secret of a token: HMAC-SHA-512 of its id."""
    return hmac.digest(key.encode(), token_id.encode(), "sha512")


def token_password(secret: bytes) -> str:
    """Return the HMAC as the password with which clients log in."""
    return base64.b64encode(secret).decode()


def check_principals(owner: Principal, renewers: Collection[Principal]) -> None:
    """Raise OttlaError(INVALID_PRINCIPAL_TYPE) if one of them is not a user.

    A client that logs in by a token becomes `User:` with the owner's name: a principal of type
    `User:team` and name `admin` would be requested as `User:team:admin`, and become `User:admin`.
    """
    for one, what in ((owner, "own"), *((renewer, "renew") for renewer in renewers)):
        if one.type != USER:
            raise OttlaError(
                ErrorCode.INVALID_PRINCIPAL_TYPE,
                f"{shortened(str(one))} cannot {what} tokens: only a {USER} can",
            )
    if sum(len(one.name) + len(USER) for one in (owner, *renewers)) > NAMES_CHARACTERS_MAX:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the names of owner and renewers of a token have more than {NAMES_CHARACTERS_MAX} "
            "characters; name fewer renewers",
        )


def check_count(tokens: Iterable[DelegationToken], requester: Principal) -> None:
    """Raise OttlaError(POLICY_VIOLATION) if a principal has created too many of `tokens`."""
    if sum(token.requester == requester for token in tokens) >= TOKENS_OF_REQUESTER_MAX:
        raise OttlaError(
            ErrorCode.POLICY_VIOLATION,
            f"{requester} has made {TOKENS_OF_REQUESTER_MAX} delegation tokens that have not "
            "ended; end those that are not used (`ottla token list`, `ottla token expire`)",
        )


def no_such_token() -> OttlaError:
    """Return the error for an HMAC of an unknown or removed token."""
    return OttlaError(
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
        "no delegation token has this HMAC: it is wrong, or the token has ended",
    )


def _check_may_change(token: DelegationToken, principal: Principal) -> None:
    if principal not in (token.owner, *token.renewers):
        raise OttlaError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
            f"{principal} is neither owner nor renewer of the token {token.id}",
        )


def _expired(token: DelegationToken) -> OttlaError:
    return OttlaError(
        ErrorCode.DELEGATION_TOKEN_EXPIRED, f"the token {token.id} has expired; make a new one"
    )


def _at_most(wanted_ms: int, limit_ms: int) -> int:
    return min(wanted_ms, limit_ms) if wanted_ms > 0 else limit_ms


def _later(now_ms: int, period_ms: int) -> int:
    """Limit a time to what the protocol can represent."""
    return min(_LONG_MAX, now_ms + period_ms)
