"""Exactly once into a database: the offset is stored where the output is, in one transaction.

Either both are there after a crash or neither is, so that reading goes on at the right record
without anything committed to the broker. Works with any store that has transactions.

    python examples/exactly_once.py --bootstrap localhost:9092 --topic payments --database sums.db
"""

import argparse
import sqlite3
from collections.abc import Callable

from ottla.client import TopicPartition
from ottla.client.sync import Admin, Consumer

Step = Callable[[str], None]


def open_database(path: str) -> sqlite3.Connection:
    """The sums per key, and how far each partition has been summed up."""
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE IF NOT EXISTS sums (key TEXT PRIMARY KEY, total INTEGER)")
    database.execute(
        "CREATE TABLE IF NOT EXISTS offsets (topic TEXT, partition INTEGER, next INTEGER,"
        " PRIMARY KEY (topic, partition))"
    )
    return database


def run(bootstrap: str, topic: str, path: str, step: Step, count: int | None) -> None:
    """Add the values of records to their keys' sums until `count` offsets are done (None: go on).

    `step` is told where the work stands, so that a test can end the process there.
    """
    database = open_database(path)
    with Admin(bootstrap) as admin:
        (view,) = admin.topics.describe_all([topic])
    partitions = [TopicPartition(topic, entry.partition) for entry in view.partitions]
    stored = {
        TopicPartition(topic, partition): offset
        for topic, partition, offset in database.execute("SELECT * FROM offsets")
    }
    with Consumer(bootstrap) as consumer:
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, stored.get(partition, 0))
        while count is None or sum(stored.values()) < count:
            for batch in consumer.poll().by_partition:
                partition = TopicPartition(batch.topic, batch.partition)
                step("before the transaction")
                with database:
                    for record in batch:
                        database.execute(
                            "INSERT INTO sums VALUES (?, ?)"
                            " ON CONFLICT (key) DO UPDATE SET total = total + excluded.total",
                            ((record.key or b"").decode(), int(record.value or 0)),
                        )
                    step("within the transaction")
                    stored[partition] = batch[-1].offset + 1
                    database.execute(
                        "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)",
                        (*partition, stored[partition]),
                    )
                step("after the transaction")


def main() -> None:
    """Sum up until stopped."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    options.add_argument("--topic", required=True)
    options.add_argument("--database", default="sums.db")
    options.add_argument("--count", type=int, help="stop after so many records")
    chosen = options.parse_args()
    run(chosen.bootstrap, chosen.topic, chosen.database, lambda _: None, chosen.count)
    for key, total in open_database(chosen.database).execute("SELECT * FROM sums ORDER BY key"):
        print(f"{key}: {total}")


if __name__ == "__main__":
    main()
