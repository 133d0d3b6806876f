"""The broker settings that the share coordinator uses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    """Values of the broker settings `share.coordinator.*`, with Kafka's defaults."""

    # How many updates follow a snapshot before the next one is written.
    updates_per_snapshot: int = 500
    # The age at which a snapshot is written again, so that records before it can be deleted.
    snapshot_interval_ms: int = 300_000
