"""`ottla topic delete-records`: the oldest records of partitions."""

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.consume.places import resolved
from ottla.cli.text.output import show
from ottla.cli.text.places import METAVAR, named
from ottla.cli.text.words import Position, position
from ottla.client.admin import Admin
from ottla.client.connection.cluster import connections_of
from ottla.client.consumer.offsets import EARLIEST
from ottla.diagnosis.offsets import Offsets, offsets_at

_COLUMNS = ["topic", "partition", "old_start", "new_start", "deleted"]


@click.command(name="delete-records")
@click.argument("words", nargs=-1, required=True, metavar=METAVAR, shell_complete=topics)
@click.option(
    "--before",
    type=position,
    required=True,
    metavar="PLACE",
    help="An offset, a time, -N (the last N stay), or latest: none stays.",
)
@options.yes
@options.bootstrap
@options.output
def delete_records(
    words: tuple[str, ...], before: Position, yes: bool, bootstrap: str, form: str
) -> None:
    """Delete the records of partitions below a place. This cannot be undone.

    \b
    ottla topic delete-records flights-0 --before 1234
    ottla topic delete-records flights --before 7d
    ottla topic delete-records flights planes --before latest --yes

    A topic's name stands for all of its partitions. The logs begin at the place from then on; the
    disk gets its space back segment by segment.
    """  # noqa: D301

    async def look(admin: Admin) -> tuple[Offsets, Offsets]:
        cluster, places = connections_of(admin), await named(admin, words)
        starts = await offsets_at(cluster, places, EARLIEST)
        if before.kind == "offset":
            # An offset beyond the end is refused by the broker.
            return starts, {place: max(starts[place], before.number) for place in places}
        return starts, await resolved(cluster, places, before)

    starts, wanted = with_admin(bootstrap, look)
    if not yes:
        count = sum(offset - starts[place] for place, offset in wanted.items())
        options.confirm(
            f"Delete the records of {counted(count, 'offset')} in "
            f"{counted(len(wanted), 'partition')}? They are lost for ever."
        )
    done = with_admin(bootstrap, lambda admin: admin.logs.delete_records(wanted))
    rows = [_row(place, starts[place], new) for place, new in sorted(done.items())]
    show(form, rows, _COLUMNS)


def _row(place: TopicPartition, old: int, new: int) -> dict[str, object]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "old_start": old,
        "new_start": new,
        "deleted": new - old,
    }
