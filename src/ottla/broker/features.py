"""Features of this broker and their levels: what clients switch on. They never change here."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.setting import shortened
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION

_SHARE_GROUPS = 1
LEVELS = {"share.version": _SHARE_GROUPS, "transaction.version": EPOCH_PER_TRANSACTION}
# Counts changes.
EPOCH = 1


def check_level(feature: str, level: int) -> None:
    """Refuse a level that a feature does not have. Raises OttlaError(INVALID_UPDATE_VERSION)."""
    known = LEVELS.get(feature)
    if known is None:
        raise OttlaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Could not set {shortened(feature)} to {level}: there is no such feature here; "
            f"there are {', '.join(LEVELS)}",
        )
    if level != known:
        raise OttlaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Could not set {feature} to {level}: it is always {known} here",
        )
