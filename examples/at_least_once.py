"""At least once: process first, then commit. A crash in between repeats the records.

For work that may be repeated without harm, such as writing rows under their primary key.

    python examples/at_least_once.py --bootstrap localhost:9092 --topic orders
"""

import argparse
from collections.abc import Callable

from ottla.client import ConsumerOptions, ConsumerRecord
from ottla.client.sync import Consumer

Process = Callable[[ConsumerRecord], None]


def run(
    bootstrap: str,
    topic: str,
    group: str,
    process: Process,
    count: int | None,
    commit_every: int = 100,
) -> None:
    """Process `count` records (None: all that ever come), committing after every few."""
    options = ConsumerOptions(group_id=group, enable_auto_commit=False)
    with Consumer(bootstrap, **options) as consumer:
        consumer.subscribe(topic)
        for done, record in enumerate(consumer, start=1):
            process(record)
            # Commits exactly what was processed: the record in hand, and none after it.
            if done % commit_every == 0 or done == count:
                consumer.commit()
            if done == count:
                return


def main() -> None:
    """Print records as they come."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    options.add_argument("--topic", required=True)
    options.add_argument("--group", default="at-least-once")
    options.add_argument("--count", type=int, help="stop after so many records")
    chosen = options.parse_args()
    run(chosen.bootstrap, chosen.topic, chosen.group, lambda r: print(r.value), chosen.count)


if __name__ == "__main__":
    main()
