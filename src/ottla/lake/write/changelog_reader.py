"""Reads a history as of a time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.merge_task import read_state
from ottla.lake.model.layout import columns_of
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.schema import VALIDITY
from ottla.lake.rows.key_changes import as_of
from ottla.lake.tables.opening import existing_table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = [one.name for one in VALIDITY]
_MICROSECOND = timedelta(microseconds=1)


def changelog_as_of(
    target: str, moment: datetime, *, store_options: Mapping[str, str] | None = None
) -> pa.Table:
    """Return the values that held at `moment`, which has a time zone, in the columns of a load.

    A key that is in several partitions has one value in each. Raises OttlaError if `target` holds
    no history.
    """
    micros = micros_of(moment)
    table = existing_table(target, store_options)
    newest, _ = table.latest()
    require_history(target, newest)
    parts = [as_of(read_state(table.store, file), micros) for file in table.live_files()]
    # Files that were not rewritten since a column was added lack that column.
    return pa.concat_tables(
        [columns_of(newest).empty_table().drop_columns(_TIMES), *parts],
        promote_options="permissive",
    )


def micros_of(moment: datetime) -> int:
    """Return a time in the form of files. Raises OttlaError for a time without a time zone."""
    if moment.tzinfo is None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"{moment} has no time zone: give one, such as timezone.utc"
        )
    return (moment - _EPOCH) // _MICROSECOND


def require_history(target: str, newest: Manifest | None) -> None:
    """Raise OttlaError if a table is not a history."""
    if newest is None or newest.changelog is None or newest.changelog.keeps != "history":
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} holds no history: `ottla lake changelog TOPIC --to DIR --kind history`",
        )
