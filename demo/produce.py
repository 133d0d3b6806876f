"""The producer, a process of its own: an unmodified librdkafka client that knows nothing of Ottla.

Keeps the producer's side of the proof: from each delivery report (partition, offset, time) and
the source's own bytes it computes what the lake must hold, by the published row hash; and it
measures how long each partition waits between two acknowledgements.
Prints a line of JSON for each step; the last one is the proof.
"""

import argparse
import json
import sys
import time
from collections import Counter
from typing import Any

import pyarrow as pa
from confluent_kafka import Message, Producer

from demo import flights
from ottla.lake.model.row_hash import MODULUS, batch_hash, hash_text
from ottla.lake.model.schema import ROW_SCHEMA

_HASH_EVERY = 20_000
# Waits between two acknowledgements of one partition that are told.
LONG_S = 0.05
# How finely acknowledgements are kept, and how much around a wait is told of them.
_STEP_S, _AROUND_S = 0.004, 1.0
_SERVE_EVERY = 100
_TELL_EVERY_S = 0.1


class Pace:
    """How many records of each partition were acknowledged, and when one had to wait."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.waits: list[dict[str, float]] = []
        # (time, how many so far) by partition, at most every few milliseconds.
        self.steps: dict[int, list[tuple[float, int]]] = {}
        self._last: dict[int, float] = {}

    def close_to_waits(self) -> dict[int, list[tuple[float, int]]]:
        """The steps around each wait that is told, for a drawing of it."""
        spans = [
            (wait["began"] - _AROUND_S, wait["began"] + wait["seconds"] + _AROUND_S)
            for wait in self.waits
        ]
        return {
            partition: [step for step in steps if any(a <= step[0] <= b for a, b in spans)]
            for partition, steps in self.steps.items()
        }

    def note(self, partition: int) -> None:
        """A record of this partition is acknowledged now."""
        now = time.time()
        self.counts[partition] += 1
        steps = self.steps.setdefault(partition, [])
        if not steps or now - steps[-1][0] > _STEP_S:
            steps.append((now, self.counts[partition]))
        else:
            steps[-1] = steps[-1][0], self.counts[partition]
        seconds = now - self._last.get(partition, now)
        if seconds > LONG_S:
            began = self._last[partition]
            self.waits.append({"partition": partition, "began": began, "seconds": seconds})
        self._last[partition] = now


class SourceProof:
    """Counts and hashes what the cluster acknowledged."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0
        self.pace = Pace()
        self._hash = 0
        self._waiting: list[tuple[bytes | None, bytes, int, int, int]] = []

    def on_delivery(self, error: Any, message: Message) -> None:
        if error is not None:
            self.failed += 1
            return
        self.count += 1
        self.pace.note(message.partition())
        _, timestamp_ms = message.timestamp()
        self._waiting.append(
            (message.key(), message.value(), message.partition(), message.offset(), timestamp_ms)
        )
        if len(self._waiting) >= _HASH_EVERY:
            self._hash_waiting()

    def hash(self) -> str:
        """The hash of all acknowledged rows."""
        self._hash_waiting()
        return hash_text(self._hash)

    def _hash_waiting(self) -> None:
        keys, values, partitions, offsets, times = zip(*self._waiting, strict=True) or ([],) * 5
        batch = pa.RecordBatch.from_pydict(
            {
                "key": keys,
                "value": values,
                "headers": [[]] * len(keys),
                "topic": [""] * len(keys),
                "partition": partitions,
                "offset": offsets,
                "timestamp": [stamp * 1000 for stamp in times],
                "timestamp_type": [0] * len(keys),
            },
            schema=ROW_SCHEMA,
        )
        self._hash = (self._hash + batch_hash(batch)) % MODULUS
        self._waiting.clear()


def say(**fields: Any) -> None:
    """Tell the demo, by a line of JSON."""
    sys.stdout.write(json.dumps({"at": time.time(), **fields}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Produce all flights at about `--rate` records a second, through whatever happens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rate", type=int, required=True)
    told = parser.parse_args()
    producer = Producer(
        {
            "bootstrap.servers": told.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 20,
            "message.timeout.ms": 60_000,
            # A broker's death is part of the plan.
            "log_level": 0,
            "log.connection.close": False,
        }
    )
    proof = SourceProof()
    began = last_told = time.monotonic()
    for number, (key, value) in enumerate(flights.rows(), start=1):
        producer.produce(told.topic, value, key, on_delivery=proof.on_delivery)
        if number % _SERVE_EVERY == 0:
            # Serve delivery reports until it is time for more.
            producer.poll(0)
            while (ahead_s := began + number / told.rate - time.monotonic()) > 0:
                producer.poll(ahead_s)
            if time.monotonic() - last_told > _TELL_EVERY_S:
                last_told = time.monotonic()
                _tell(proof)
    while producer.flush(_TELL_EVERY_S):
        _tell(proof)
    _tell(proof)
    say(
        event="proof",
        count=proof.count,
        failed=proof.failed,
        hash=proof.hash(),
        waits=proof.pace.waits,
        steps=proof.pace.close_to_waits(),
    )


def _tell(proof: SourceProof) -> None:
    counts = sorted(proof.pace.counts.items())
    say(event="delivered", count=proof.count, partitions=counts)


if __name__ == "__main__":
    main()
