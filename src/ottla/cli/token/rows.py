"""Delegation tokens as rows of a table, without their secrets."""

from ottla.base.quantities import iso
from ottla.security.tokens import DelegationToken

COLUMNS = ("id", "owner", "requester", "renewers", "expires", "renewable_until")


def row(token: DelegationToken) -> dict[str, object]:
    """One token."""
    return {
        "id": token.id,
        "owner": str(token.owner),
        "requester": str(token.requester),
        "renewers": [str(one) for one in token.renewers],
        "issued": iso(token.issued_ms),
        "expires": iso(token.expires_ms),
        "renewable_until": iso(token.max_ms),
    }
