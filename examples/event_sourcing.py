"""Event sourcing: the log of events is the truth, and state is computed from it.

Accounts are never updated; what happened to them is appended. Balances now, or as they were at
any earlier offset, come from replaying the log.

    python examples/event_sourcing.py --bootstrap localhost:9092
"""

import argparse
import json
from collections import Counter
from uuid import uuid4

from ottla.client import TopicPartition
from ottla.client.sync import Admin, Consumer, Producer

Event = dict[str, str | int]
EVENTS: list[Event] = [
    {"type": "opened", "account": "alice", "amount": 100},
    {"type": "opened", "account": "bob", "amount": 50},
    {"type": "withdrawn", "account": "alice", "amount": 30},
    {"type": "deposited", "account": "bob", "amount": 30},
    {"type": "withdrawn", "account": "bob", "amount": 80},
]
SIGN = {"opened": 1, "deposited": 1, "withdrawn": -1}


def append(bootstrap: str, topic: str, events: list[Event]) -> None:
    """Append events in their order; the account is the key, so that its events stay in order."""
    with Producer(bootstrap) as producer:
        for event in events:
            producer.send(topic, json.dumps(event), key=str(event["account"]))


def replay(bootstrap: str, topic: str, up_to: int | None = None) -> dict[str, int]:
    """Balances after the events below offset `up_to` (None: after all of them)."""
    partition = TopicPartition(topic, 0)
    balances: Counter[str] = Counter()
    with Consumer(bootstrap) as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition] if up_to is None else up_to
        if end == 0:
            return {}
        for record in consumer:
            event: Event = json.loads(record.value or b"")
            balances[str(event["account"])] += SIGN[str(event["type"])] * int(event["amount"])
            if record.offset + 1 >= end:
                break
    return dict(balances)


def main() -> None:
    """Append events and look at the past and the present."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    bootstrap = options.parse_args().bootstrap
    topic = f"accounts-{uuid4().hex[:8]}"
    with Admin(bootstrap) as admin:
        admin.topics.create(topic, partitions=1, config={"retention.ms": "-1"})
    append(bootstrap, topic, EVENTS)
    print(f"after two events: {replay(bootstrap, topic, up_to=2)}")
    print(f"now: {replay(bootstrap, topic)}")


if __name__ == "__main__":
    main()
