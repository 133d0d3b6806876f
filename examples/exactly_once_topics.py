"""Exactly once from topic to topic: what was made of records, and how far they were read, together.

Output and offsets belong to one transaction: readers with `read_committed` see both or neither,
whenever the process dies. A newer process with the same transactional id fences the older.

    python examples/exactly_once_topics.py --bootstrap localhost:9092 --source in --target out
"""

import argparse
from collections.abc import Callable

from ottla.client import ConsumerOptions, Records, TopicPartition
from ottla.client.sync import Consumer, Producer

Step = Callable[[str], None]


def run(
    bootstrap: str,
    source: str,
    target: str,
    group: str,
    transactional_id: str,
    step: Step,
    until: int | None,
) -> None:
    """Write each value in capitals, until offset `until` of partition 0 is committed (None: go on).

    `step` is told where the work stands, so that a test can end the process there.
    """
    options = ConsumerOptions(
        group_id=group, isolation_level="read_committed", enable_auto_commit=False
    )
    with (
        Producer(bootstrap, transactional_id=transactional_id) as producer,
        Consumer(bootstrap, **options) as consumer,
    ):
        # Aborts what a process before left open.
        producer.init_transactions()
        consumer.subscribe(source)
        while until is None or _next(consumer, source) < until:
            batches = consumer.poll().by_partition
            if not batches:
                continue
            with producer.transaction():
                for batch in batches:
                    for record in batch:
                        producer.send(target, (record.value or b"").upper(), record.key)
                producer.send_offsets_to_transaction(_offsets(batches), consumer.group_metadata())
                producer.flush()
                step("within the transaction")
            step("after the transaction")


def _offsets(batches: list[Records]) -> dict[TopicPartition, int]:
    """For each partition the offset to go on with."""
    return {TopicPartition(batch.topic, batch.partition): batch[-1].offset + 1 for batch in batches}


def _next(consumer: Consumer, source: str) -> int:
    return consumer.committed(source, 0) or 0


def main() -> None:
    """Go on for ever."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    options.add_argument("--source", required=True)
    options.add_argument("--target", required=True)
    options.add_argument("--group", default="exactly-once")
    options.add_argument("--id", default="exactly-once-1", help="one for each process")
    options.add_argument("--until", type=int, help="stop when partition 0 is read so far")
    chosen = options.parse_args()
    names = (chosen.source, chosen.target, chosen.group, chosen.id)
    run(chosen.bootstrap, *names, lambda _: None, chosen.until)


if __name__ == "__main__":
    main()
