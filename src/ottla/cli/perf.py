"""`ottla perf`: measures how fast a cluster takes and returns records."""

import asyncio
from typing import Any

import click

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.text.output import show_one
from ottla.cli.text.words import size
from ottla.client import ProducerOptions
from ottla.client.producer.options import Acks, Codec
from ottla.diagnosis.performance import Performance
from ottla.diagnosis.performance import consume as measured_consume
from ottla.diagnosis.performance import produce as measured_produce


@click.group()
def perf() -> None:
    """Measure how fast one client can send and read records."""


_SHARES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))


def show_performance(topic: str, found: Performance, form: str) -> None:
    """Print the performance as one line, or as a JSON object."""
    latencies = {name: found.latency_ms(share) for name, share in _SHARES}
    if form == "json":
        answer: dict[str, Any] = {
            "topic": topic,
            "records": found.records,
            "bytes": found.bytes,
            "seconds": round(found.seconds, 3),
            "records_per_s": round(found.records_per_s),
            "bytes_per_s": round(found.bytes_per_s),
        }
        for name, latency_ms in latencies.items():
            answer[f"latency_ms_{name}"] = None if latency_ms is None else round(latency_ms, 2)
        show_one("json", answer)
        return
    words = (
        f"{counted(found.records, 'record')} in {found.seconds:.2f} s: {found.records_per_s:,.0f} "
        f"records/s, {found.bytes_per_s / 1e6:,.1f} MB/s"
    )
    if found.latencies_ms:
        parts = ", ".join(f"{name} {latency_ms:.1f}" for name, latency_ms in latencies.items())
        words += f"; acknowledged after {parts} ms"
    click.echo(words)


@perf.command()
@click.argument("topic", shell_complete=topics)
@click.option("-n", "--records", "most", type=click.IntRange(1), help="Not more than about these.")
@options.bootstrap
@options.output
def consume(topic: str, most: int | None, bootstrap: str, form: str) -> None:
    """Read TOPIC to its end as fast as possible. Shows no records.

    \b
    ottla perf consume scratch
    ottla perf consume scratch -n 100000 -o json
    """  # noqa: D301
    show_performance(topic, asyncio.run(measured_consume(bootstrap, topic, most)), form)


_ACKS: dict[str, Acks] = {"0": 0, "1": 1, "all": "all"}


@perf.command()
@click.argument("topic", shell_complete=topics)
@click.option("-n", "--records", "count", type=click.IntRange(1), default=1_000_000)
@click.option("--size", "record_bytes", type=size, default=100, help="Bytes of a record.")
@click.option("--acks", type=click.Choice(list(_ACKS)), default="all", show_default=True)
@click.option(
    "--compression",
    "-z",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
)
@options.bootstrap
@options.output
def produce(
    topic: str,
    count: int,
    record_bytes: int,
    acks: str,
    compression: Codec,
    bootstrap: str,
    form: str,
) -> None:
    """Send random records as fast as TOPIC takes them. They stay there.

    \b
    ottla perf produce scratch
    ottla perf produce scratch -n 100000 --size 1KiB --acks 1 -o json

    The figures are those of one client on this machine. If the broker also runs on it, they share
    the machine.
    """  # noqa: D301
    wanted = ProducerOptions(acks=_ACKS[acks], compression_type=compression, client_id="ottla-cli")
    found = asyncio.run(measured_produce(bootstrap, topic, count, record_bytes, wanted))
    show_performance(topic, found, form)
