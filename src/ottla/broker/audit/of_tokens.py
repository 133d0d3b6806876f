"""Changes of delegation tokens, which the lines name by a fingerprint of their secret."""

import hashlib
from collections.abc import Iterator, Mapping

from ottla.broker.audit.details import portions
from ottla.broker.requests.auditing import AdminChange, Need
from ottla.security.audit.line import bounded
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ottla.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_FINGERPRINT_DIGITS = 16
_OWN = "a user's own tokens need no ACL"
_OWNERS = "owner and renewers of the token may"


def create_token(
    body: CreateDelegationTokenRequest, response: CreateDelegationTokenResponse
) -> Iterator[AdminChange]:
    """The token's id, the fingerprint by which later lines name it, and its renewers."""
    owner = f"{response.principal_type}:{response.principal_name}"
    requester = (
        f"{response.token_requester_principal_type}:{response.token_requester_principal_name}"
    )
    renewers = (f"{one.principal_type}:{one.principal_name}" for one in body.renewers)
    detail: dict[str, object] = {"token": response.token_id}
    if not response.error_code:
        detail |= {"fingerprint": _fingerprint(response.hmac), "ends": response.max_timestamp_ms}
    need = Need(AclOperation.CREATE_TOKENS, AclResource.USER, bounded(owner))
    rule = _OWN if owner == requester else ""
    for portion in portions((bounded(one), None) for one in renewers):
        named = {**detail, "renewers": list(portion)}
        yield AdminChange((need,), named, response.error_code, rule=rule)


def renew_token(
    body: RenewDelegationTokenRequest, response: RenewDelegationTokenResponse
) -> Iterator[AdminChange]:
    """One line."""
    detail = {"renewed_until": response.expiry_timestamp_ms}
    yield _change(body.hmac, detail, response.error_code)


def expire_token(
    body: ExpireDelegationTokenRequest, response: ExpireDelegationTokenResponse
) -> Iterator[AdminChange]:
    """One line."""
    detail = {"ends": response.expiry_timestamp_ms, "removed": body.expiry_time_period_ms < 0}
    yield _change(body.hmac, detail, response.error_code)


def _change(secret: bytes, detail: Mapping[str, object], code: int) -> AdminChange:
    need = Need(AclOperation.ALTER, AclResource.DELEGATION_TOKEN, _fingerprint(secret))
    return AdminChange((need,), {} if code else detail, code, rule=_OWNERS)


def _fingerprint(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()[:_FINGERPRINT_DIGITS]
