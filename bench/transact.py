"""Transactions of one producer in a process of its own: `python -m bench.transact …`.

Each has so many records of 100 random bytes, and is committed before the next one begins. Prints
one line of JSON.
"""

import argparse
import json
import random
import sys
import time
from typing import Any

from confluent_kafka import Producer

_RECORD_BYTES = 100
_PATIENCE_S = 60


def transact(bootstrap: str, topic: str, transactions: int, records: int) -> dict[str, Any]:
    """Commit so many transactions of so many records, one after the other."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": topic,
            "log_level": 0,
        }
    )
    producer.init_transactions(_PATIENCE_S)
    chance = random.Random(1)
    values = [chance.randbytes(_RECORD_BYTES) for _ in range(records)]
    took_s = []
    cpu_s, began_s = time.process_time(), time.perf_counter()
    for _ in range(transactions):
        before_s = time.perf_counter()
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        producer.commit_transaction(_PATIENCE_S)
        took_s.append(time.perf_counter() - before_s)
    took_s.sort()
    return {
        "transactions": transactions,
        "seconds": time.perf_counter() - began_s,
        "client_cpu_s": time.process_time() - cpu_s,
        "p50_ms": took_s[len(took_s) // 2] * 1000,
        "p99_ms": took_s[len(took_s) * 99 // 100] * 1000,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--transactions", type=int, required=True)
    parser.add_argument("--records", type=int, required=True)
    chosen = parser.parse_args()
    print(json.dumps(transact(chosen.bootstrap, chosen.topic, chosen.transactions, chosen.records)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
