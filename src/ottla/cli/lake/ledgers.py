"""Imports the lake, which is an extra, and shows ledgers as rows of a table."""

import logging
import sys
from collections.abc import Iterable
from dataclasses import asdict
from types import ModuleType
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.cli.common.error_output import wants_json
from ottla.ledger.partition import PartitionLedger, Unreadable

LEDGER_COLUMNS = [
    "partition",
    "start",
    "end",
    "loaded",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "unreadable",
    "absent",
    "dead_letters",
    "keyless",
    "unexplained",
]

# Packages whose warnings are only for people.
_SPOKEN = ("ottla.client.ranges",)


def import_lake() -> ModuleType:
    """Import `ottla.lake`. Raises OttlaError if a package that it needs is not installed."""
    try:
        import ottla.lake  # noqa: PLC0415  # Arrow is an extra, and slow to import.
    except ImportError as error:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the lake needs a package that is not installed ({error.name}): "
            "pip install 'ottla[lake]'",
        ) from None
    # With `-o json` standard error is an object, or empty.
    level = logging.ERROR if wants_json(sys.argv[1:]) else logging.NOTSET
    for name in _SPOKEN:
        logging.getLogger(name).setLevel(level)
    return ottla.lake


def skipped_lines(topic: str, skipped: Iterable[Unreadable]) -> list[str]:
    """Return a line for each partition with unreadable offsets. Call `import_lake` first."""
    from ottla.lake.source import ledgers  # noqa: PLC0415  # As above.

    return ledgers.skipped_lines(topic, skipped)


def ledger_rows(ledgers: Iterable[PartitionLedger]) -> list[dict[str, Any]]:
    """Return a row for each partition, with the remainder, which has to be 0."""
    return [{**asdict(ledger), "unexplained": ledger.unexplained} for ledger in ledgers]


def columns_changed(topic: str, manifest: Any) -> list[str]:
    """Return a line for each change of a table's typed columns in a commit."""
    return [
        f"columns changed: {change.what}, from "
        + ", ".join(f"{topic}-{p} offset {o}" for p, o in sorted(change.offsets.items()))
        for change in (manifest.schema_changes if manifest else ())
    ]


def letters_line(target: str, ledgers: Iterable[PartitionLedger]) -> list[str]:
    """Return a line with the number of dead letters and how to list them; nothing without any."""
    dead = sum(ledger.dead_letters for ledger in ledgers)
    return [f"{counted(dead, 'dead letter')}: `ottla dlq list {target}` shows them"] if dead else []
