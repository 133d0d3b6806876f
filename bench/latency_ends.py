"""The two ends of the latency measurement: `python -m bench.latency_ends produce|consume …`.

A record carries the nanosecond of the machine's monotonic clock at which it was handed to the
producer; the consumer, a process of its own, subtracts. Prints one line of JSON.
"""

import argparse
import json
import struct
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

_STAMP = struct.Struct(">q")
_PADDING = bytes(92)


def produce(bootstrap: str, topic: str, records: int, rate: int, acks: str) -> None:
    """Send records evenly in time."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": acks, "log_level": 0}
    )
    gap_s = 1 / rate
    due_s = time.perf_counter()
    for _ in range(records):
        producer.produce(topic, _STAMP.pack(time.monotonic_ns()) + _PADDING)
        producer.poll(0)
        due_s += gap_s
        if (pause_s := due_s - time.perf_counter()) > 0:
            time.sleep(pause_s)
    producer.flush(60)


def consume(bootstrap: str, topic: str, records: int, skip: int) -> list[float]:
    """Latencies in milliseconds, without the first `skip` records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "latency",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 500,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    print("ready", flush=True)
    latencies: list[float] = []
    while len(latencies) < records:
        message = consumer.poll(30)
        now_ns = time.monotonic_ns()
        if message is None or message.error():
            raise RuntimeError(f"after {len(latencies)} records: {message and message.error()}")
        latencies.append((now_ns - _STAMP.unpack_from(message.value())[0]) / 1e6)
    consumer.close()
    return latencies[skip:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("produce", "consume"))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--acks", default="all")
    chosen = parser.parse_args()
    if chosen.action == "produce":
        produce(chosen.bootstrap, chosen.topic, chosen.records, chosen.rate, chosen.acks)
        return 0
    latencies = sorted(consume(chosen.bootstrap, chosen.topic, chosen.records, chosen.skip))
    count = len(latencies)
    result = {
        "p50_ms": latencies[count // 2],
        "p99_ms": latencies[count * 99 // 100],
        "p999_ms": latencies[count * 999 // 1000],
        "max_ms": latencies[-1],
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
