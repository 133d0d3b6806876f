"""Topics to test with, made and waited for."""

import itertools
import time
from collections.abc import Callable

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

_PATIENCE_S = 90


def wait_for_leaders(client: AdminClient, name: str, partitions: int) -> None:
    """Until every partition answers: its leader may stand in the metadata before it serves."""
    asked = {TopicPartition(name, index): OffsetSpec.latest() for index in range(partitions)}
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            for answer in client.list_offsets(asked, request_timeout=30).values():
                answer.result(30)
            return
        except KafkaException:
            time.sleep(0.01)
    raise TimeoutError(f"topic {name} has no leaders after {_PATIENCE_S} s")


def topic_maker(bootstrap: str, prefix: str) -> Callable[..., str]:
    """Makes topics with names of their own, and leaders: `make(partitions=3, retention_ms="1")`."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    numbers = itertools.count(1)

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"{prefix}-{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(90)
        wait_for_leaders(admin, name, partitions)
        return name

    return make
