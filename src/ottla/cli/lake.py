"""`ottla lake`: loads from topics into tables of Parquet files, and their proof."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli import options
from ottla.cli.output import show, show_one

if TYPE_CHECKING:
    from types import ModuleType

    from ottla.ledger.partition import PartitionLedger

_LEDGER_COLUMNS = [
    "partition",
    "start",
    "end",
    "loaded",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "unreadable",
    "unexplained",
]

_TOLD_COLUMNS = [
    "partition",
    "data",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "lost",
    "unexplained",
]


@click.group()
def lake() -> None:
    """Load topics into a lake, and prove it."""


@lake.command()
@click.argument("topic")
@click.option("--to", "target", required=True, metavar="DIR", help="The table's folder.")
@click.option(
    "--from",
    "start",
    default="last-load",
    show_default=True,
    help="Where the first load starts: earliest, latest, @MILLISECONDS, or PARTITION:OFFSET,…",
)
@click.option(
    "--until", "end", default="latest", show_default=True, help="Where it ends, likewise."
)
@click.option(
    "--group", default=None, help="Commit to this group where the table stands after the load."
)
@click.option(
    "--skip-unreadable",
    is_flag=True,
    help="Leave out batches that cannot be read, and count them, instead of failing.",
)
@options.bootstrap
@options.output
def load(
    topic: str,
    target: str,
    start: str,
    end: str,
    group: str | None,
    skip_unreadable: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Load what is new in TOPIC into the table in DIR, exactly once.

    \b
    ottla lake load flights --to /lake/flights
    ottla lake load flights --to /lake/flights --from @1704067200000
    ottla lake load flights --to /lake/flights --group lake:flights

    Run it again and it loads only what came since. Killed at any step it neither loses nor
    doubles. After it a ledger accounts for every offset.
    """  # noqa: D301
    loads = _import_lake()
    steps = _Steps()
    done = loads.load(
        topic,
        target,
        bootstrap=bootstrap,
        start=start,
        end=end,
        group=group,
        skip_unreadable=skip_unreadable,
        on_step=steps,
    )
    steps.end()
    if form == "json":
        show_one("json", {**asdict(done), "unexplained": 0})
        return
    if not done.rows and not done.ledgers:
        total = done.manifest.total_rows if done.manifest else 0
        click.echo(f"nothing new in {topic}; the table holds {counted(total, 'row')}")
        return
    assert done.manifest is not None
    show(form, _ledger_rows(done.ledgers), _LEDGER_COLUMNS)
    for line in loads.skipped_lines(topic, done.skipped):
        click.secho(line, fg="yellow")
    click.echo(
        f"{counted(done.rows, 'row')} in {counted(done.files, 'file')} in {done.seconds:.1f} s; "
        f"the table holds {counted(done.manifest.total_rows, 'row')}, "
        f"hash {done.manifest.total_hash}"
    )


@lake.command()
@click.argument("target", metavar="DIR")
@click.option("--offline", is_flag=True, help="Check files and manifests only, not the topic.")
@options.bootstrap
@options.output
@click.pass_context
def verify(ctx: click.Context, target: str, offline: bool, bootstrap: str, form: str) -> None:
    """Derive the proof of the table in DIR anew, from its files and from the topic.

    \b
    ottla lake verify /lake/flights
    ottla lake verify /lake/flights --offline

    Tells every offset that is missing, doubled or altered; exits with 1 where there is one.
    """  # noqa: D301
    loads = _import_lake()
    found = loads.verify(target, bootstrap=None if offline else bootstrap)
    if form == "json":
        answer = asdict(found)
        answer["ledgers"] = _ledger_rows(found.ledgers.values())
        show_one("json", {**answer, "proven": found.proven})
    else:
        show(form, _ledger_rows(found.ledgers.values()), _LEDGER_COLUMNS, empty="an empty table")
        if found.told:
            click.echo("\nwhat the brokers' ledger says of these offsets now:")
            rows = [{"partition": p, **asdict(told)} for p, told in sorted(found.told.items())]
            show(form, rows, _TOLD_COLUMNS)
        for line in loads.skipped_lines(found.topic, found.skipped):
            click.secho(f"left out when loaded: {line}", fg="yellow")
        for problem in found.problems:
            click.secho(problem, fg="red")
        verdict = "proven" if found.proven else f"NOT proven: {len(found.problems)} problem(s)"
        click.echo(
            f"{verdict}: {counted(found.rows, 'row')} of {found.topic} in "
            f"{counted(found.loads, 'load')}, hash {found.hash}; {found.compared:,} compared "
            f"with the topic, {found.only_in_lake:,} only in the lake by now"
        )
    if not found.proven:
        ctx.exit(1)


@lake.command()
@click.argument("target", metavar="DIR")
@options.output
def files(target: str, form: str) -> None:
    """List the Parquet files that count in the table in DIR.

    \b
    duckdb -c "select count(*) from read_parquet([$(ottla lake files /lake/flights | …)])"
    """  # noqa: D301
    paths = _import_lake().files(target)
    if form == "json":
        show(form, [{"path": path} for path in paths], ["path"])
    else:
        click.echo("\n".join(paths))


def _import_lake() -> "ModuleType":
    try:
        import ottla.lake  # noqa: PLC0415  # Arrow is an extra, and slow to import.
    except ImportError as error:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the lake needs a package that is not installed ({error.name}): "
            "pip install 'ottla[lake]'",
        ) from None
    return ottla.lake


def _ledger_rows(ledgers: "Iterable[PartitionLedger]") -> list[dict[str, Any]]:
    return [{**asdict(ledger), "unexplained": ledger.unexplained} for ledger in ledgers]


_COMING = {"planned": "starting Spark", "spark started": "loading", "files written": "committing"}


def counted(count: int, word: str) -> str:
    """A number and its noun: `1 row`, `2,000 rows`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


class _Steps:
    """Shows on a terminal which step a load is at."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, step: str) -> None:
        if self._shown and step in _COMING:
            click.echo(f"\r\x1b[K{_COMING[step]} …", nl=False, err=True)

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
