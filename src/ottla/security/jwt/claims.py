"""Checks the claims of a token with a verified signature. The rules are those of Kafka's broker."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeGuard

from ottla.base.errors import shortened
from ottla.security.sasl.bearer import RefusedToken


@dataclass(frozen=True, slots=True)
class TokenPolicy:
    """Kafka's `sasl.oauthbearer.…` settings of a listener."""

    # The token must name one of these; if empty, a token with an audience is refused, as in Kafka.
    audiences: frozenset[str] = frozenset()
    # None accepts any issuer whose key is at the JWKS address.
    issuer: str | None = None
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    clock_skew_s: int = 30


class Claims(NamedTuple):
    """The claims of an accepted token that the broker uses."""

    subject: str
    # Seconds since 1970; the token may be accepted for `clock_skew_s` longer.
    expires_s: float
    scopes: frozenset[str]


_SUBJECT_CHARACTERS_MAX: Final = 1000
_CLOCKS: Final = "or the clocks of issuer and broker differ (sasl.oauthbearer.clock.skew.seconds)"


def check_claims(claims: Mapping[str, object], policy: TokenPolicy, now_s: float) -> Claims:
    """Return the used claims. Raises RefusedToken for the first broken rule."""
    expires_s = _time(claims, "exp")
    if expires_s is None:
        raise _missing("exp")
    if now_s - policy.clock_skew_s >= expires_s:
        raise RefusedToken(
            f"its token expired {now_s - expires_s:.0f} s ago: have the client get a new one in "
            f"time, {_CLOCKS}",
            "expired",
        )
    begins_s = _time(claims, "nbf")
    if begins_s is not None and now_s + policy.clock_skew_s < begins_s:
        raise RefusedToken(
            f"its token is valid only in {begins_s - now_s:.0f} s (claim nbf): wait, {_CLOCKS}",
            "not yet valid",
        )
    issued_s = _time(claims, "iat")
    if issued_s is None:
        raise _missing("iat")
    if expires_s < max(issued_s, begins_s or issued_s):
        raise RefusedToken(
            "its token expires before it begins (claims exp, iat, nbf): correct it at the issuer",
            "malformed claim",
        )
    _check_issuer(claims, policy)
    _check_audience(claims, policy)
    return Claims(_subject(claims, policy), expires_s, _scopes(claims, policy))


def _check_issuer(claims: Mapping[str, object], policy: TokenPolicy) -> None:
    issuer = claims.get("iss")
    if policy.issuer is not None and issuer != policy.issuer:
        raise RefusedToken(
            f"its token is of issuer {_shown(issuer)}, and sasl.oauthbearer.expected.issuer is "
            f"{policy.issuer!r}: send the client to that issuer, or correct the setting",
            "issuer",
        )


def _check_audience(claims: Mapping[str, object], policy: TokenPolicy) -> None:
    audience = claims.get("aud")
    named = [audience] if isinstance(audience, str) else audience
    if named is None and not policy.audiences:
        return
    texts = {each for each in named if isinstance(each, str)} if isinstance(named, list) else set()
    if not texts & policy.audiences:
        expected = ", ".join(sorted(policy.audiences)) or "not set"
        raise RefusedToken(
            f"its token is for audience {_shown(audience)}, and sasl.oauthbearer.expected.audience"
            f" is {expected}: have the client ask for a token of this cluster, or correct the "
            "setting",
            "audience",
        )


def _subject(claims: Mapping[str, object], policy: TokenPolicy) -> str:
    subject = claims.get(policy.subject_claim)
    if subject is None:
        raise _missing(policy.subject_claim)
    name = subject.strip() if isinstance(subject, str) else ""
    if not name or not name.isprintable() or len(name) > _SUBJECT_CHARACTERS_MAX:
        raise RefusedToken(
            f"claim {policy.subject_claim} of its token is {_shown(subject)}, which is no name of "
            "a user: correct the user at the issuer, or set sasl.oauthbearer.sub.claim.name",
            "subject",
        )
    return name


def _scopes(claims: Mapping[str, object], policy: TokenPolicy) -> frozenset[str]:
    """Return the scopes, from a text with blanks or a list; none are required."""
    found = claims.get(policy.scope_claim)
    if isinstance(found, str):
        return frozenset(found.split())
    if not isinstance(found, list):
        return frozenset()
    names = [each.strip() for each in found if isinstance(each, str)]
    if len(names) < len(found) or not all(names) or len({*names}) < len(names):
        raise RefusedToken(
            f"claim {policy.scope_claim} of its token is {_shown(found)}, and is to list different "
            "names: correct it at the issuer, or set sasl.oauthbearer.scope.claim.name",
            "scope",
        )
    return frozenset(names)


def _time(claims: Mapping[str, object], name: str) -> float | None:
    """Return a claim's time in seconds since 1970; None if the claim is missing."""
    value = claims.get(name)
    if value is None:
        return None
    if not is_time(value):
        raise RefusedToken(
            f"claim {name} of its token is {_shown(value)}, and is to be a number of seconds: "
            "correct it at the issuer",
            "malformed claim",
        )
    return float(value)


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether a JSON value is a time in seconds; not every number is one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _missing(name: str) -> RefusedToken:
    return RefusedToken(
        f"its token has no claim {name}: have the issuer put it in", f"claim {name}"
    )


def _shown(value: object) -> str:
    return shortened(repr(value))
