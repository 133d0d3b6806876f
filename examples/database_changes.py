"""Database change subscription: every change of a table is a record, and a cache follows it.

The key is the row's primary key and the value the row, or null where it was deleted. The topic is
compacted: a new subscriber reads the last state of each row and then what changes.

    python examples/database_changes.py --bootstrap localhost:9092
"""

import argparse
import json
import sqlite3
from uuid import uuid4

from ottla.client.sync import Admin, Consumer, Producer


class Table:
    """People by id, in SQLite; each change is published once it is committed."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city TEXT)")

    def put(self, number: int, name: str, city: str) -> None:
        """Insert or change a row."""
        with self._database:
            self._database.execute("REPLACE INTO people VALUES (?, ?, ?)", (number, name, city))
        row = json.dumps({"name": name, "city": city})
        self._producer.send(self._topic, row, key=str(number))

    def delete(self, number: int) -> None:
        """Delete a row: its record has no value."""
        with self._database:
            self._database.execute("DELETE FROM people WHERE id = ?", (number,))
        self._producer.send(self._topic, None, key=str(number))

    def rows(self) -> dict[str, dict[str, str]]:
        """What is in the table."""
        found = self._database.execute("SELECT id, name, city FROM people ORDER BY id")
        return {str(number): {"name": name, "city": city} for number, name, city in found}


def follow(bootstrap: str, topic: str, changes: int) -> dict[str, dict[str, str]]:
    """A cache of the table, after so many changes."""
    cache: dict[str, dict[str, str]] = {}
    with Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        for seen, record in enumerate(consumer, start=1):
            key = (record.key or b"").decode()
            if record.value is None:
                cache.pop(key, None)
            else:
                cache[key] = json.loads(record.value)
            print(f"change {seen}: {key} -> {cache.get(key)}")
            if seen == changes:
                return dict(sorted(cache.items()))
    raise AssertionError("the consumer never ends by itself")


def main() -> None:
    """Change a table, follow it from elsewhere, compare."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    bootstrap = options.parse_args().bootstrap
    topic = f"people-{uuid4().hex[:8]}"
    with Admin(bootstrap) as admin:
        admin.topics.create(topic, partitions=1, config={"cleanup.policy": "compact"})
    with Producer(bootstrap) as producer:
        table = Table(producer, topic)
        table.put(1, "Ottla", "Prague")
        table.put(2, "Max", "Prague")
        table.put(3, "Felice", "Berlin")
        table.put(2, "Max", "Tel Aviv")
        table.delete(3)
        producer.flush()
        cache = follow(bootstrap, topic, changes=5)
        assert cache == table.rows(), "the cache differs from the table"
    print(f"the cache equals the table: {cache}")


if __name__ == "__main__":
    main()
