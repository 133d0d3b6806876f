"""What the coordinator of share state needs to know of the broker's settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    """Values of the broker settings `share.coordinator.*`, with Kafka's defaults."""

    # How many updates follow a snapshot before the next one is written.
    updates_per_snapshot: int = 500
    # How old a snapshot may become, so that what is before it in the log can be deleted.
    snapshot_interval_ms: int = 300_000
