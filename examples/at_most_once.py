"""At most once: commit first, then process. A crash in between loses the record.

For work where doing something twice is worse than not at all, such as sending an alarm that
will be sent again soon anyway.

    python examples/at_most_once.py --bootstrap localhost:9092 --topic alarms
"""

import argparse
from collections.abc import Callable

from ottla.client import ConsumerOptions, ConsumerRecord
from ottla.client.sync import Consumer

Process = Callable[[ConsumerRecord], None]


def run(bootstrap: str, topic: str, group: str, process: Process, count: int | None) -> None:
    """Process `count` records (None: all that ever come), each at most once."""
    options = ConsumerOptions(group_id=group, enable_auto_commit=False)
    with Consumer(bootstrap, **options) as consumer:
        consumer.subscribe(topic)
        for done, record in enumerate(consumer, start=1):
            # Once this returns, no other member of the group will see the record.
            consumer.commit()
            process(record)
            if done == count:
                return


def main() -> None:
    """Print records as they come."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    options.add_argument("--topic", required=True)
    options.add_argument("--group", default="at-most-once")
    options.add_argument("--count", type=int, help="stop after so many records")
    chosen = options.parse_args()
    run(chosen.bootstrap, chosen.topic, chosen.group, lambda r: print(r.value), chosen.count)


if __name__ == "__main__":
    main()
