"""What a listener expects of a token, and what a token says."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class TokenPolicy:
    """Kafka's `sasl.oauthbearer.…` settings of a listener."""

    # The token names one of these; empty: a token that names any is refused, as by Kafka.
    audiences: frozenset[str] = frozenset()
    # None: any issuer whose key is at the JWKS address.
    issuer: str | None = None
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    clock_skew_s: int = 30


class Claims(NamedTuple):
    """What the broker uses of a token that is accepted."""

    subject: str
    # Seconds since 1970; the token may be accepted for `clock_skew_s` longer.
    expires_s: float
    scopes: frozenset[str]
