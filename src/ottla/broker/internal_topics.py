"""What topics look like that nobody describes: those made on first use, and the broker's own."""

from ottla.base.settings import BrokerSettings
from ottla.metadata.topic_plan import NewTopic

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"


def automatic_topic(name: str, settings: BrokerSettings, brokers: int) -> NewTopic:
    """The topic to create; internal ones have at most `brokers` replicas."""
    if name == CONSUMER_OFFSETS:
        prefix, compression = "offsets.topic", "producer"
    elif name == TRANSACTION_STATE:
        prefix, compression = "transaction.state.log", "uncompressed"
    else:
        return NewTopic(name)
    configs = {
        "cleanup.policy": "compact",
        "compression.type": compression,
        "segment.bytes": str(settings.integer(f"{prefix}.segment.bytes")),
    }
    if name == TRANSACTION_STATE:
        least = min(settings.integer("transaction.state.log.min.isr"), brokers)
        configs["min.insync.replicas"] = str(least)
    return NewTopic(
        name,
        settings.integer(f"{prefix}.num.partitions"),
        min(settings.integer(f"{prefix}.replication.factor"), brokers),
        configs=configs,
    )
