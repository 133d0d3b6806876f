"""Reads a history as of a time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.changelogs.history import as_of
from ottla.lake.changelogs.interval_files import INTERVAL_SCHEMA
from ottla.lake.changelogs.merging import read_state
from ottla.lake.schema import ROW_SCHEMA
from ottla.lake.tables.opening import existing_table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def changelog_as_of(
    target: str, moment: datetime, *, store_options: Mapping[str, str] | None = None
) -> pa.Table:
    """Return the values that held at `moment`, which has a time zone, in the columns of a load.

    A key that is in several partitions has one of each. Raises OttlaError where `target` holds no
    history.
    """
    if moment.tzinfo is None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"{moment} has no time zone: give one, such as timezone.utc"
        )
    table = existing_table(target, store_options)
    newest, _ = table.latest()
    if newest is None or newest.changelog is None or newest.changelog.keeps != "history":
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} holds no history: `ottla lake changelog TOPIC --to DIR --kind history`",
        )
    micros = (moment - _EPOCH) // _MICROSECOND
    parts = [
        as_of(read_state(table.store, file, INTERVAL_SCHEMA), micros) for file in table.live_files()
    ]
    return pa.concat_tables([ROW_SCHEMA.empty_table(), *parts])
