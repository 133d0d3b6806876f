"""`ottla lake load`: loads the new records of a topic into a table, exactly once."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.quantities import counted, iso
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.lake.declared import declares
from ottla.cli.lake.ledgers import (
    LEDGER_COLUMNS,
    columns_changed,
    import_lake,
    ledger_rows,
    letters_line,
    skipped_lines,
)
from ottla.cli.lake.lines.progress import ProgressLine
from ottla.cli.text.output import show, show_one


@click.command(cls=declares("LoadOptions"))
@click.argument("topic", shell_complete=topics)
@click.option("--to", "target", required=True, metavar="DIR", help="The table's folder.")
@options.bootstrap
@options.output
def load(
    topic: str,
    target: str,
    bootstrap: str,
    form: str,
    **given: Any,
) -> None:
    """Load what is new in TOPIC into the table DIR, exactly once.

    \b
    ottla lake load flights --to /lake/flights
    ottla lake load flights --to /lake/flights --from @1704067200000
    ottla lake load flights --to /lake/flights --group lake:flights
    ottla lake load flights --to /lake/flights --value json --on-bad-record dead-letter
    ottla lake load flights --to /lake/flights --partition-by hour --allowed-lateness 10m
    ottla lake load flights --to /lake/flights --master spark://head:7077 --conf spark.cores.max=8

    Run it again and it loads only what came since. Killed at any step it neither loses nor
    doubles. After it a ledger accounts for every offset.
    """  # noqa: D301
    loads = import_lake()
    with ProgressLine(shown=form != "json") as shown:
        watch = loads.Observer(shown.on_step, shown.on_progress)
        done = loads.load(topic, target, bootstrap=bootstrap, watch=watch, **given)
    if form == "json":
        show_one("json", {**asdict(done), "unexplained": 0})
        return
    for line in done.held_back:
        click.secho(line, fg="yellow")
    if not done.rows and not done.ledgers:
        total = done.manifest.total_rows if done.manifest else 0
        click.echo(f"nothing new in {topic}; the table holds {counted(total, 'row')}")
        return
    assert done.manifest is not None
    show(form, ledger_rows(done.ledgers), LEDGER_COLUMNS)
    for line in skipped_lines(topic, done.skipped):
        click.secho(line, fg="yellow")
    for line in columns_changed(topic, done.manifest):
        click.echo(line)
    for line in letters_line(target, done.ledgers):
        click.secho(line, fg="yellow")
    events = done.manifest.events
    if events is not None and events.late:
        late = counted(sum(events.late.values()), "row")
        click.secho(f"{late} came late, behind the watermark of the last load", fg="yellow")
    for partition, count in done.manifest.accepted_loss.items():
        lost = f"{topic}-{partition}: {counted(count, 'offset')} lost: deleted before the load"
        click.secho(lost, fg="yellow")
    click.echo(
        f"{counted(done.rows, 'row')} in {counted(done.files, 'file')} in {done.seconds:.1f} s; "
        f"the table holds {counted(done.manifest.total_rows, 'row')}, "
        f"hash {done.manifest.total_hash}"
    )
    if events is not None and events.watermark_ms is not None:
        click.echo(f"all before {iso(events.watermark_ms)} is in")
