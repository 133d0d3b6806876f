"""Log aggregation: lines of many machines' log files in one place, in order per machine.

Each agent sends the lines of its file, keyed by its host; one collector writes what comes to a
file per host. Order within a host holds because a key stays in its partition.

    python examples/log_aggregation.py --bootstrap localhost:9092
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from uuid import uuid4

from ottla.client import Admin, Consumer, ConsumerOptions, Producer, ProducerOptions

HOSTS = ("web-1", "web-2", "db-1")
LINES = 200


async def ship(bootstrap: str, topic: str, host: str, lines: list[str]) -> None:
    """The agent on one machine: its log's lines, compressed, in batches."""
    options = ProducerOptions(compression_type="zstd", linger_ms=50, client_id=f"agent-{host}")
    async with Producer(bootstrap, **options) as producer:
        for line in lines:
            await producer.send(topic, line, key=host)


async def collect(bootstrap: str, topic: str, folder: Path, count: int) -> None:
    """Write each host's lines to a file of its own."""
    options = ConsumerOptions(group_id=f"{topic}-collector")
    async with Consumer(bootstrap, **options) as consumer:
        consumer.subscribe(topic)
        while count > 0:
            for batch in (await consumer.poll()).by_partition:
                for record in batch:
                    with (folder / f"{(record.key or b'').decode()}.log").open("ab") as target:
                        target.write((record.value or b"") + b"\n")
                count -= len(batch)


async def run(bootstrap: str, logs: dict[str, list[str]], target: Path) -> None:
    """Ship the logs of some machines, and collect them."""
    topic = f"logs-{uuid4().hex[:8]}"
    async with Admin(bootstrap) as admin:
        await admin.topics.create(topic, partitions=3)
    await asyncio.gather(
        collect(bootstrap, topic, target, len(HOSTS) * LINES),
        *(ship(bootstrap, topic, host, lines) for host, lines in logs.items()),
    )


def main() -> None:
    """Make up logs, run, and compare what was collected."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--bootstrap", default="localhost:9092")
    bootstrap = options.parse_args().bootstrap
    logs = {host: [f"{host} line {number}" for number in range(LINES)] for host in HOSTS}
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(bootstrap, logs, Path(folder)))
        for host, lines in logs.items():
            collected = (Path(folder) / f"{host}.log").read_text().splitlines()
            assert collected == lines, f"the log of {host} differs"
    print(f"{len(HOSTS)} logs of {LINES} lines each arrived in order")


if __name__ == "__main__":
    main()
