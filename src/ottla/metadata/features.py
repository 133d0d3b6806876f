"""Features and their levels, which clients may rely on in the whole cluster (KIP-584).

Levels are changed by UpdateFeatures and kept in the store, so that all brokers agree. Pure values.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError, shortened

GROUP: Final = "group.version"
SHARE: Final = "share.version"
TRANSACTION: Final = "transaction.version"
ELR: Final = "eligible.leader.replicas.version"


class Levels(NamedTuple):
    """The supported levels of a feature."""

    least: int
    most: int


# Level 0 disables a feature. Eligible leader replicas stay enabled: they prevent loss of records.
SUPPORTED: Final[Mapping[str, Levels]] = {
    GROUP: Levels(0, 1),
    TRANSACTION: Levels(0, 2),
    ELR: Levels(1, 1),
    SHARE: Levels(0, 1),
}
# The levels of a new cluster.
INITIAL: Final[Mapping[str, int]] = {name: levels.most for name, levels in SUPPORTED.items()}


class UpgradeType(IntEnum):
    """How a level may change, with the numbers in UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A requested level. `upgrade_type` may be a number that is no `UpgradeType`."""

    name: str
    level: int
    upgrade_type: int


def updated(levels: Mapping[str, int], updates: Sequence[FeatureUpdate]) -> dict[str, int]:
    """The levels after all `updates`. Raises OttlaError(INVALID_UPDATE_VERSION) in Kafka's words.

    If a feature is named twice, its last update applies, as in Kafka.
    """
    after = dict(levels)
    for update in {update.name: update for update in updates}.values():
        complaint = _complaint(levels.get(update.name, 0), update)
        if complaint:
            raise OttlaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                "The update failed for all features since the following feature had an error: "
                f"Invalid update version {update.level} for feature {shortened(update.name)}. "
                f"{complaint}",
            )
        after[update.name] = update.level
    return after


def _complaint(level: int, update: FeatureUpdate) -> str:
    supported = SUPPORTED.get(update.name)
    if update.upgrade_type not in tuple(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if supported is None:
        return f"Ottla does not support this feature; there are {', '.join(SUPPORTED)}."
    if not supported.least <= update.level <= supported.most:
        only = f"Ottla only supports versions {supported.least}-{supported.most}"
        if update.name == ELR:
            only += ": the replicas that hold all committed records are always known"
        return f"{only}."
    if update.level < level and update.upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > level and update.upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return ""
