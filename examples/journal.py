"""Journaling: a service keeps its state in memory, and every change in a compacted topic.

When the process is gone, another reads the topic and has the same state. Compaction keeps the
last value of each key, so that restoring takes as long as the state is large, not as its history.

    python examples/journal.py --bootstrap localhost:9092
"""

import argparse
from uuid import uuid4

from ottla.client import TopicPartition
from ottla.client.sync import Admin, Consumer, Producer


class Store:
    """A dictionary that survives. A change holds once `put` or `delete` returns."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self.state = restore(bootstrap, topic)
        self._producer = Producer(bootstrap)

    def put(self, key: str, value: str) -> None:
        """Set a value: in the journal first, then in memory."""
        self._producer.send_and_wait(self._topic, value, key=key)
        self.state[key] = value

    def delete(self, key: str) -> None:
        """Forget a key; compaction removes it from the journal in time."""
        self._producer.send_and_wait(self._topic, None, key=key)
        self.state.pop(key, None)

    def close(self) -> None:
        """Close the journal; memory is lost with the process."""
        self._producer.close()


def restore(bootstrap: str, topic: str) -> dict[str, str]:
    """The state that the journal holds."""
    partition = TopicPartition(topic, 0)
    state: dict[str, str] = {}
    with Consumer(bootstrap) as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            for batch in consumer.poll().by_partition:
                for record in batch:
                    key = (record.key or b"").decode()
                    if record.value is None:
                        state.pop(key, None)
                    else:
                        state[key] = record.value.decode()
    return state


def main() -> None:
    """Change a store, lose it, and restore it."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    bootstrap = options.parse_args().bootstrap
    topic = f"journal-{uuid4().hex[:8]}"
    with Admin(bootstrap) as admin:
        admin.topics.create(topic, partitions=1, config={"cleanup.policy": "compact"})
    first = Store(bootstrap, topic)
    for number in range(100):
        first.put(f"sensor-{number % 5}", f"{number} degrees")
    first.delete("sensor-0")
    before = dict(first.state)
    first.close()
    second = Store(bootstrap, topic)
    assert second.state == before, "the restored state differs"
    second.close()
    print(f"restored {len(before)} keys: {before}")


if __name__ == "__main__":
    main()
