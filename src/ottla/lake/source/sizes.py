"""Asks the brokers how many bytes the logs of topics take."""

from collections.abc import Collection, Mapping

from ottla.base.errors import OttlaError
from ottla.client import sync
from ottla.lake.source.access import Bootstrap, ClientAccess, as_brokers

# Without an answer the sizes are guessed; the plan is still correct.
_PATIENCE_S = 5.0


def partition_bytes(bootstrap: Bootstrap, topic: str) -> Mapping[int, int]:
    """Return the size of each partition's largest replica, on brokers that answer in time."""
    return log_bytes(bootstrap, [topic]).get(topic, {})


def log_bytes(
    bootstrap: Bootstrap,
    topics: Collection[str],
    access: ClientAccess | None = None,
) -> dict[str, dict[int, int]]:
    """Return the sizes of partitions for several topics."""
    sizes: dict[str, dict[int, int]] = {topic: {} for topic in topics}
    try:
        brokers = as_brokers(bootstrap)
        config = (access or brokers.access).client_config()
        with sync.Admin(brokers.bootstrap, config=config) as admin:
            for directory in admin.logs.directories(patience_s=_PATIENCE_S):
                for partition, size in directory.partition_bytes.items():
                    if partition.topic in sizes:
                        own = sizes[partition.topic]
                        own[partition.partition] = max(own.get(partition.partition, 0), size)
    except OttlaError:
        return {}
    return sizes
