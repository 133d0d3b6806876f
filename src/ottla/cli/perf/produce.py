"""`ottla perf produce`: measures how fast records are accepted."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import run
from ottla.cli.perf.shown import show_performance
from ottla.cli.text.words import size
from ottla.client import ProducerOptions
from ottla.client.producer.options import Acks, Codec
from ottla.diagnosis.performance import produce as measured

_ACKS: dict[str, Acks] = {"0": 0, "1": 1, "all": "all"}


@click.command()
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

    The figures are those of one client on this machine, which shares it with the broker where
    both run on it.
    """  # noqa: D301
    wanted = ProducerOptions(acks=_ACKS[acks], compression_type=compression, client_id="ottla-cli")
    found = run(measured(bootstrap, topic, count, record_bytes, wanted))
    show_performance(topic, found, form)
