"""The broker settings that a group coordinator needs."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Values of the broker settings `group.*` and `offset(s).*`, with Kafka's defaults."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    # How many members a group may have.
    max_size: int = 2_147_483_647
    # How long the metadata of a committed offset may be, in characters.
    offset_metadata_max: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1_000
    # Of the consumer protocol (KIP-848): heartbeat interval, session timeout, largest size of a
    # group, and the assignors on offer, the default one first.
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 2_147_483_647
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    # Which groups with members may change their protocol: bidirectional, upgrade, downgrade or
    # disabled.
    migration_policy: str = "bidirectional"
    # The same settings of share groups (KIP-932).
    share_session_timeout_ms: int = 45_000
    share_heartbeat_interval_ms: int = 5_000
    share_max_size: int = 200
    # A new member does not know its id yet and cannot send heartbeats while its join waits.
    new_member_join_timeout_ms: int = 5 * 60 * 1_000


class Pace(NamedTuple):
    """The heartbeat interval and the session timeout of a group's members.

    `session_setting` is the setting of the session timeout.
    """

    session_timeout_ms: int
    heartbeat_interval_ms: int
    session_setting: str = "group.consumer.session.timeout.ms"

    @property
    def session_limit(self) -> str:
        """The setting of the session timeout, with its value."""
        return f"{self.session_setting}={self.session_timeout_ms}"
