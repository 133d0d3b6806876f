"""`ottla lake replace`: ranges of a table read from the topic again."""

from dataclasses import asdict

import click

from ottla.base.quantities import counted
from ottla.cli import options
from ottla.cli.lake.ledgers import LEDGER_COLUMNS, import_lake, ledger_rows, skipped_lines
from ottla.cli.lake.spark_options import spark_options
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show, show_one


@click.command()
@click.argument("topic")
@click.argument("target", metavar="DIR")
@click.option(
    "--from", "start", required=True, metavar="PARTITION:OFFSET,…", help="Where the ranges start."
)
@click.option(
    "--until",
    "end",
    required=True,
    metavar="PARTITION:OFFSET,…",
    help="Where they end, of the same partitions; these offsets are not replaced.",
)
@click.option("--here", is_flag=True, help="Do it in this process, without Spark.")
@click.option(
    "--skip-unreadable",
    is_flag=True,
    help="Leave out batches that cannot be read, and count them, instead of failing.",
)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Let rows go that the topic does not hold any more, and put that on record.",
)
@click.option(
    "--on-bad-timestamp",
    type=click.Choice(["fail", "null"]),
    default="fail",
    show_default=True,
    help="What becomes of a record whose timestamp no Spark timestamp can hold.",
)
@with_store_options
@spark_options
@options.bootstrap
@options.output
def replace(
    topic: str,
    target: str,
    start: str,
    end: str,
    here: bool,
    skip_unreadable: bool,
    accept_loss: bool,
    on_bad_timestamp: str,
    store_options: dict[str, str],
    master: str | None,
    conf: dict[str, str],
    name: str | None,
    bootstrap: str,
    form: str,
) -> None:
    """Read ranges of offsets of TOPIC again, in place of the rows that the table in DIR has.

    \b
    ottla lake replace flights /lake/flights --from 0:100 --until 0:200
    ottla lake replace flights /lake/flights --from 0:0,1:50 --until 0:100,1:80 --here

    The table has loaded these offsets before. Other rows stay, and so do its positions. Where
    nothing differs it says so and commits nothing, so that it may be repeated.
    """  # noqa: D301
    lake = import_lake()
    done = lake.replace(
        topic,
        target,
        start=start,
        end=end,
        bootstrap=bootstrap,
        skip_unreadable=skip_unreadable,
        accept_loss=accept_loss,
        on_bad_timestamp=on_bad_timestamp,
        store_options=store_options,
        spark_settings=lake.SparkSettings(master, name, conf),
        runner=lake.run_here if here else None,
    )
    if form == "json":
        show_one("json", asdict(done))
        return
    if done.manifest is None:
        click.echo(f"nothing differs: the table has the {counted(done.rows, 'row')} of the topic")
        return
    show(form, ledger_rows(done.ledgers), LEDGER_COLUMNS)
    for line in skipped_lines(topic, done.manifest.skipped):
        click.secho(line, fg="yellow")
    for partition, count in done.manifest.accepted_loss.items():
        gone = f"{topic}-{partition}: {counted(count, 'row')} went that the topic does not hold"
        click.secho(gone, fg="yellow")
    click.echo(
        f"{counted(done.rows, 'row')} in place of {done.removed_rows:,} in {done.seconds:.1f} s; "
        f"the table holds {counted(done.manifest.total_rows, 'row')}, "
        f"hash {done.manifest.total_hash}"
    )
