"""Waiting for topics: a partition's leader may stand in the metadata before it serves."""

import time

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec


def wait_for_leaders(client: AdminClient, name: str, partitions: int) -> None:
    """Until every partition answers: its leader may stand in the metadata before it serves."""
    asked = {TopicPartition(name, index): OffsetSpec.latest() for index in range(partitions)}
    for _ in range(500):
        try:
            for answer in client.list_offsets(asked, request_timeout=10).values():
                answer.result(10)
            return
        except KafkaException:
            time.sleep(0.01)
    raise TimeoutError(f"topic {name} has no leaders after 5 s")
