"""Functions shared by the delegation token requests (KIP-48, KIP-373)."""

import hashlib
from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.auditing import AdminChange, Need
from ottla.broker.requests.request import RequestContext
from ottla.network.connection import Connection
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import ANONYMOUS

_FINGERPRINT_DIGITS = 16


def may_ask(client: Connection) -> bool:
    """Whether the client may send requests about tokens.

    It must be authenticated, and not by a token, so that tokens cannot be used to create others.
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
    """Return the audit line for renewing or expiring a token, successful or not."""
    need = Need(AclOperation.ALTER, AclResource.DELEGATION_TOKEN, fingerprint(secret))
    return AdminChange(
        (need,), {} if code else detail, code, rule="owner and renewers of the token may"
    )


def fingerprint(secret: bytes) -> str:
    """Return a fingerprint that identifies a token in audit lines without its secret."""
    return hashlib.sha256(secret).hexdigest()[:_FINGERPRINT_DIGITS]
