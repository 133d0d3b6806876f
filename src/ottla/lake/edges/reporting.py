"""Writes the report of a table, from the table and its topic."""

import time
from collections.abc import Mapping

from ottla.lake.edges.commits import commits, ledger_of_table
from ottla.lake.edges.delays import delays
from ottla.lake.edges.metrics import replace_file
from ottla.lake.edges.pipeline_state import history, status
from ottla.lake.edges.report import report_page
from ottla.lake.tables.opening import existing_table


def write_report(
    path: str, target: str, bootstrap: str | None, store_options: Mapping[str, str] | None = None
) -> None:
    """Write the report of the table in `target` to `path`, with its lag if `bootstrap` is given.

    Raises OttlaError.
    """
    found = status(target, bootstrap, store_options)
    manifests = history(target, store_options)
    page = report_page(
        found,
        commits(manifests),
        ledger_of_table(manifests),
        delays(existing_table(target, store_options).store, manifests),
        found.live,
        time.time_ns() // 1_000_000,
    )
    replace_file(path, page)
