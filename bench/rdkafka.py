"""librdkafka at work in a process of its own: `python -m bench.rdkafka produce|consume …`.

Prints one line of JSON.
"""

import argparse
import itertools
import json
import random
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.steady import FAST

_RECORD_BYTES = 100
_CHUNK = 10_000
_PATIENCE_S = 180.0


def produce(
    bootstrap: str, topic: str, records: int, acks: str, partitions: int = 0
) -> dict[str, Any]:
    """Produce records of 100 random bytes as fast as the client can, and wait for all answers.

    With `partitions`, each record goes to the next partition, and each partition has got a record
    before; else the client chooses.
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
    for partition in range(partitions):
        producer.produce(topic, values[0], partition=partition)
    if producer.flush(_PATIENCE_S):
        raise RuntimeError("first records were not acknowledged")
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
    """Every 50 ms, produce 50 records to 50 random partitions; milliseconds until each answer.

    Before that, each partition gets its first record in the same way: `first_p99_ms`.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    chance = random.Random(1)
    value = chance.randbytes(_RECORD_BYTES)
    taken: list[float] = []

    def note(error: object, message: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        taken.append(message.latency() * 1000)

    def act(chosen: Iterable[Sequence[int]]) -> list[float]:
        taken.clear()
        for each in chosen:
            due_s = time.perf_counter() + 0.05
            for partition in each:
                producer.produce(topic, value, partition=partition, on_delivery=note)
            while (left_s := due_s - time.perf_counter()) > 0:
                producer.poll(left_s)
        if producer.flush(60):
            raise RuntimeError("records were not acknowledged")
        return sorted(taken)

    every = range(partitions)
    first = act(every[at : at + 50] for at in every[::50])
    later = act(chance.sample(every, min(50, partitions)) for _ in range(rounds))
    found = {f"p{q}_ms": later[int(len(later) * q / 100)] for q in (50, 99)}
    return {**found, "first_p99_ms": first[int(len(first) * 0.99)]}


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


def group(bootstrap: str, topic: str, records: int) -> dict[str, Any]:
    """Read so many records of all partitions as the one member of a new group."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"group-{time.time_ns()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    cpu_s, began_s = time.process_time(), time.perf_counter()
    consumer.subscribe([topic])
    done = 0
    while done < records:
        done += sum(message.error() is None for message in consumer.consume(_CHUNK, 0.1))
        if time.perf_counter() - began_s > _PATIENCE_S:
            raise RuntimeError(f"{done} of {records} records came in {_PATIENCE_S} s")
    result = _result(done, began_s, cpu_s)
    consumer.close()
    return result


def follow(bootstrap: str, topic: str, leader: int) -> dict[str, Any]:
    """Produce to and consume from all partitions that `leader` leads, once before a line of input.

    Then again: the seconds from that line until all records were acknowledged, and all were read.
    """
    # The broker dies, so no time-out is needed; the first flush of thousands of logs takes seconds.
    fast = {**FAST, "bootstrap.servers": bootstrap, "socket.timeout.ms": 60_000, "log_level": 0}
    producer = Producer({**fast, "acks": "all", "linger.ms": 0})
    consumer = Consumer({**fast, "group.id": "follow", "fetch.error.backoff.ms": 10})
    found = producer.list_topics(topic, 30).topics[topic].partitions.values()
    led = [partition.id for partition in found if partition.leader == leader]
    consumer.assign([TopicPartition(topic, index, 0) for index in led])
    _once_each(producer, consumer, topic, led)
    print("ready", flush=True)
    sys.stdin.readline()
    produce_s, consume_s = _once_each(producer, consumer, topic, led)
    return {"produce_s": produce_s, "consume_s": consume_s}


def _once_each(
    producer: Producer, consumer: Consumer, topic: str, partitions: list[int]
) -> tuple[float, float]:
    """Send a record to each partition; seconds until all are acknowledged, and all are read."""
    waiting, unread = set(partitions), set(partitions)
    produce_s = consume_s = 0.0
    began_s = time.perf_counter()

    def note(error: object, message: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        waiting.discard(message.partition())

    for index in partitions:
        producer.produce(topic, b"here", partition=index, on_delivery=note)
    while waiting or unread:
        producer.poll(0.002)
        for message in consumer.consume(_CHUNK, 0.002):
            if message.error() is None:
                unread.discard(message.partition())
        now_s = time.perf_counter() - began_s
        if now_s > _PATIENCE_S:
            raise RuntimeError(f"{len(waiting)} are not acknowledged, {len(unread)} not read")
        produce_s = now_s if waiting or not produce_s else produce_s
        consume_s = now_s if unread or not consume_s else consume_s
    return produce_s, consume_s


def _result(records: int, began_s: float, cpu_s: float) -> dict[str, Any]:
    return {
        "records": records,
        "bytes": records * _RECORD_BYTES,
        "seconds": time.perf_counter() - began_s,
        "client_cpu_s": time.process_time() - cpu_s,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("produce", "trickle", "consume", "group", "follow"))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--acks", default="all")
    parser.add_argument("--partitions", type=int, default=0, help="send to each of them in turn")
    parser.add_argument("--leader", type=int, help="use the partitions that this broker leads")
    parser.add_argument("--authority", help="speak TLS, and trust this certificate")
    chosen = parser.parse_args()
    if chosen.action == "produce":
        result = produce(
            chosen.bootstrap, chosen.topic, chosen.records, chosen.acks, chosen.partitions
        )
    elif chosen.action == "trickle":
        result = trickle(chosen.bootstrap, chosen.topic, chosen.records, chosen.partitions)
    elif chosen.action == "group":
        result = group(chosen.bootstrap, chosen.topic, chosen.records)
    elif chosen.action == "follow":
        result = follow(chosen.bootstrap, chosen.topic, chosen.leader)
    else:
        result = consume(chosen.bootstrap, chosen.topic, chosen.records, chosen.authority)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
