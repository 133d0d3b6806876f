"""The certificate of a table: its commits, their files, and a ledger of every offset.

A JSON document that can be checked without ottla: `examples/check_certificate.py` does it in a
few lines, with hashes computed by its own code.

    {"format": "ottla lake certificate 1",
     "sha256": digest of the document's text with 64 zeros in this place,
     "issued_ms", "ottla", "table", "topic", "topic_id", "cluster_id",
     "verdict": {"proven", "compared", "only_in_lake", "topic_was_read", "problems", "overridden"},
     "positions": {partition: offset}, "rows", "hash",
     "loads": [{"version", "kind", "digest", "previous", "load_id", "created_ms",
                "ledgers": [{"partition", "start", "end", and a count for each term}],
                "files": [{"path", "partition", "start", "end", "rows", "size_bytes", "hash",
                           "sha256"}],
                "removed": [paths of files of earlier commits that are no longer live],
                "dead_letters": [files, likewise], "removed_dead_letters": [paths, likewise],
                "accepted_loss", "skipped"}]}

The text is JSON as Python's `json.dumps(document, indent=1)` writes it, and a line feed. The counts
of a ledger add up to `end - start`. Rows are hashed as in `row_hash`. Each load has the digest of
the previous one, and a later certificate of the same table repeats the loads of an earlier one. So
if an earlier certificate is kept elsewhere, it shows whether the table's history was rewritten.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ottla import __version__
from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.check.report import Verification
from ottla.lake.check.verify import verify
from ottla.lake.model.manifest import Manifest
from ottla.lake.tables.opening import existing_table
from ottla.ledger.partition import PartitionLedger

FORMAT = "ottla lake certificate 1"
_BLANK = "0" * 64


def certificate(
    target: str,
    *,
    bootstrap: str | None,
    store_options: Mapping[str, str] | None = None,
    config: str | None = None,
    client: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Verify the table in `target`, and return a certificate of the result.

    If `bootstrap` is given, the table is compared with its topic; `config` and `client` are the
    settings of the client, as in `verify`. A table that is not proven gets a
    certificate that says so. Raises OttlaError if there is no table, if it is a changelog table, or
    if the cluster does not answer.
    """
    _require_loads(target, store_options)
    found = verify(
        target, bootstrap=bootstrap, store_options=store_options, config=config, client=client
    )
    links = [one for one in existing_table(target, store_options).links() if one.manifest]
    newest = links[-1].manifest if links else None
    document = {
        "format": FORMAT,
        "sha256": _BLANK,
        "issued_ms": time.time_ns() // 1_000_000,
        "ottla": __version__,
        "table": target,
        "topic": found.topic,
        "topic_id": newest.topic_id if newest else None,
        "cluster_id": newest.cluster_id if newest else None,
        "verdict": _verdict(found, topic_was_read=bootstrap is not None),
        "positions": _by_partition(newest.positions) if newest else {},
        "rows": found.rows,
        "hash": found.hash,
        "loads": [_load(one.manifest, one.after.digest) for one in links if one.manifest],
    }
    document["sha256"] = hashlib.sha256(certificate_text(document).encode()).hexdigest()
    return document


def _require_loads(target: str, store_options: Mapping[str, str] | None) -> None:
    """Raise OttlaError for a changelog table, whose files do not hold ranges of offsets."""
    links = existing_table(target, store_options).links()
    if any(one.manifest.changelog for one in links if one.manifest):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} is a changelog table, and certificates are of tables of all rows: "
            "`ottla lake verify` proves it",
        )


def certificate_text(document: Mapping[str, Any]) -> str:
    """Return the document as the text of its file."""
    return json.dumps(document, indent=1) + "\n"


def _verdict(found: Verification, *, topic_was_read: bool) -> dict[str, Any]:
    return {
        "proven": found.proven,
        "compared": found.compared,
        "only_in_lake": found.only_in_lake,
        "topic_was_read": topic_was_read,
        "problems": found.problems,
        "overridden": found.overridden,
    }


def _load(manifest: Manifest, digest: str | None) -> dict[str, Any]:
    return {
        "version": manifest.version,
        "kind": manifest.kind,
        "digest": digest,
        "previous": manifest.previous,
        "load_id": manifest.load_id,
        "created_ms": manifest.created_ms,
        "ledgers": [_ledger(ledger) for ledger in manifest.ledgers],
        "files": [asdict(file) for file in manifest.files],
        "removed": [file.path for file in manifest.removed],
        "dead_letters": [asdict(file) for file in manifest.dead_letters],
        "removed_dead_letters": [file.path for file in manifest.removed_dead_letters],
        "accepted_loss": _by_partition(manifest.accepted_loss),
        "skipped": [asdict(one) for one in manifest.skipped],
    }


def _ledger(ledger: PartitionLedger) -> dict[str, Any]:
    """Return the ledger's own counts. The broker's counts are left out: sums do not need them."""
    counts = asdict(ledger)
    del counts["reported"]
    return counts


def _by_partition(numbers: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): number for partition, number in sorted(numbers.items())}
