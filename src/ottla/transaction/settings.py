"""The broker settings that a transaction coordinator needs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Values of the broker's settings for transactions, with Kafka's defaults."""

    max_timeout_ms: int = 900_000
    # How long an unused id is kept.
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1_000
