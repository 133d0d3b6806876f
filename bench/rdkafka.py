"""librdkafka at work in a process of its own: `python -m bench.rdkafka produce|consume …`.

Prints one line of JSON.
"""

import argparse
import itertools
import json
import random
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

_RECORD_BYTES = 100
_CHUNK = 10_000
_WARM_UP_ROUNDS = 40


def produce(
    bootstrap: str, topic: str, records: int, acks: str, partitions: int = 0
) -> dict[str, Any]:
    """Produce records of 100 random bytes as fast as the client can, and wait for all answers.

    With `partitions`, each record goes to the next partition; else the client chooses.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
    )
    chance = random.Random(1)
    values = [chance.randbytes(_RECORD_BYTES) for _ in range(1000)]
    turns = itertools.cycle(range(partitions or 1))
    cpu_s, began_s = time.process_time(), time.perf_counter()
    done = 0
    while done < records:
        for value in values:
            while True:
                try:
                    if partitions:
                        producer.produce(topic, value, partition=next(turns))
                    else:
                        producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
        done += len(values)
        producer.poll(0)
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} records were not acknowledged")
    return _result(done, began_s, cpu_s)


def trickle(bootstrap: str, topic: str, rounds: int, partitions: int) -> dict[str, Any]:
    """Every 50 ms, produce 50 records to 50 random partitions; milliseconds until each answer."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    chance = random.Random(1)
    value = chance.randbytes(_RECORD_BYTES)
    taken: list[float] = []

    def note(error: object, message: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        taken.append(message.latency() * 1000)

    for number in range(rounds + _WARM_UP_ROUNDS):
        if number == _WARM_UP_ROUNDS:
            producer.flush(60)
            taken.clear()
        due_s = time.perf_counter() + 0.05
        for partition in chance.sample(range(partitions), min(50, partitions)):
            producer.produce(topic, value, partition=partition, on_delivery=note)
        while (left_s := due_s - time.perf_counter()) > 0:
            producer.poll(left_s)
    if producer.flush(60):
        raise RuntimeError("records were not acknowledged")
    taken.sort()
    return {f"p{q}_ms": taken[int(len(taken) * q / 100)] for q in (50, 99)}


def consume(
    bootstrap: str, topic: str, records: int, authority: str | None = None
) -> dict[str, Any]:
    """Read so many records from the start of partition 0, by chunks."""
    tls = {"security.protocol": "SSL", "ssl.ca.location": authority} if authority else {}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            # By default it pauses a second when its queue is full, which punishes a fast broker.
            "fetch.queue.backoff.ms": 10,
            **tls,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    cpu_s, began_s = time.process_time(), time.perf_counter()
    done = 0
    while done < records:
        chunk = consumer.consume(_CHUNK, 30)
        if not chunk:
            raise RuntimeError(f"nothing came for 30 s after {done} of {records} records")
        if error := chunk[0].error():
            raise RuntimeError(str(error))
        done += len(chunk)
    result = _result(done, began_s, cpu_s)
    consumer.close()
    return result


def _result(records: int, began_s: float, cpu_s: float) -> dict[str, Any]:
    return {
        "records": records,
        "bytes": records * _RECORD_BYTES,
        "seconds": time.perf_counter() - began_s,
        "client_cpu_s": time.process_time() - cpu_s,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("produce", "trickle", "consume"))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--acks", default="all")
    parser.add_argument("--partitions", type=int, default=0, help="send to each of them in turn")
    parser.add_argument("--authority", help="speak TLS, and trust this certificate")
    chosen = parser.parse_args()
    if chosen.action == "produce":
        result = produce(
            chosen.bootstrap, chosen.topic, chosen.records, chosen.acks, chosen.partitions
        )
    elif chosen.action == "trickle":
        result = trickle(chosen.bootstrap, chosen.topic, chosen.records, chosen.partitions)
    else:
        result = consume(chosen.bootstrap, chosen.topic, chosen.records, chosen.authority)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
