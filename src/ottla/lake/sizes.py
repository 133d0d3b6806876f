"""How many bytes the brokers' logs of a topic take."""

from ottla.base.errors import OttlaError
from ottla.client import sync

# Without an answer the plan is as good as a guess, and no less right.
_PATIENCE_S = 5.0


def partition_bytes(bootstrap: str, topic: str) -> dict[int, int]:
    """The size of each partition's largest replica; of those brokers that answer in time."""
    sizes: dict[int, int] = {}
    try:
        with sync.Admin(bootstrap) as admin:
            for directory in admin.logs.directories(patience_s=_PATIENCE_S):
                for partition, size in directory.partition_bytes.items():
                    if partition.topic == topic:
                        number = partition.partition
                        sizes[number] = max(sizes.get(number, 0), size)
    except OttlaError:
        return {}
    return sizes
