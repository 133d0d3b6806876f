"""The steady producer as its measurements see it: gaps between acknowledgements, and losses."""

import contextlib
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from rig.clusters import Cluster
from rig.process import Process, start

_PATIENCE_S = 90.0
_POLL_S = 0.02
_MEMORY = "/dev/shm"


@dataclass(slots=True)
class Load:
    """A record every 5 ms to one partition. `outcome` is there once it has ended."""

    cluster: Cluster
    topic: str
    partition: int
    process: Process
    file: Path
    outcome: dict[str, Any] = field(default_factory=dict)

    def acknowledged(self) -> list[tuple[int, int]]:
        """Monotonic nanoseconds and number of each record acknowledged so far."""
        text = self.file.read_text() if self.file.exists() else ""
        complete = text[: text.rfind("\n") + 1].splitlines()
        return [(int(at), int(number)) for at, number in (line.split() for line in complete)]

    def wait_for_flow(self, since_ns: int, quiet_s: float = 0.5) -> None:
        """Until records sent after `since_ns` have been acknowledged for `quiet_s`."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            after = [at for at, _ in self.acknowledged() if at > since_ns]
            # Many, and the latest just now.
            if len(after) > 20 and after[-1] - after[-20] < 400_000_000:
                time.sleep(quiet_s)
                return
            time.sleep(_POLL_S)
        raise TimeoutError(f"no acknowledgements for {_PATIENCE_S:.0f} s")

    def longest_gap_ms(self, from_ns: int) -> float:
        """The longest time between acknowledgements, from the last one before `from_ns` on."""
        times = [at for at, _ in self.acknowledged()]
        before = [at for at in times if at <= from_ns][-1:]
        seen = before + [at for at in times if at > from_ns]
        gaps = [later - earlier for earlier, later in itertools.pairwise(seen)]
        return max(gaps) / 1e6

    def end(self) -> None:
        """Stop sending, and read back what became of the records."""
        self.process.terminate(90)
        self.outcome = json.loads(self.process.log_tail().splitlines()[-1])
        numbers = {number for _, number in self.acknowledged()}
        found = _read(self.cluster, self.topic, self.partition)
        self.outcome["lost"] = len(numbers - set(found))
        self.outcome["twice"] = len(found) - len(set(found))


@contextlib.contextmanager
def load(cluster: Cluster, topic: str, partition: int = 0) -> Iterator[Load]:
    """Send while the block lasts; it begins when records flow. The partition must be fresh."""
    # In memory, so that the disk delays the brokers alone.
    with tempfile.TemporaryDirectory(prefix="bench-load-", dir=_MEMORY) as folder:
        file = Path(folder) / "acknowledged"
        command = [sys.executable, "-m", "bench.steady", "--bootstrap", cluster.bootstrap]
        command += ["--topic", topic, "--partition", str(partition)]
        process = start([*command, "--acknowledged", file], Path(folder) / "output")
        sending = Load(cluster, topic, partition, process, file)
        try:
            sending.wait_for_flow(time.monotonic_ns())
            yield sending
            sending.end()
        finally:
            process.kill()


def _read(cluster: Cluster, topic: str, partition: int) -> list[int]:
    """The number of each record that the partition holds."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "bench", "log_level": 0}
    )
    at = TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(at, timeout=30)
    consumer.assign([at])
    found: list[int] = []
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        chunk = consumer.consume(1000, 1.0)
        found += [int(m.value() or b"") for m in chunk if m.error() is None]
        if end == 0 or any((m.offset() or 0) >= end - 1 for m in chunk if m.error() is None):
            break
    consumer.close()
    return found
