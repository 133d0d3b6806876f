"""Settles what a changelog table keeps and its number of buckets, as its first run decided."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.manifest import Changelog, Keeps, Manifest
from ottla.lake.write.commit import LoadPlan, LoadSettings

# About how many bytes of the first run's log one bucket of a new table covers.
_BUCKET_BYTES = 64 << 20
_BUCKETS_LEAST, _BUCKETS_MOST = 8, 1024


def kept_by(
    before: Manifest | None,
    kind: Keeps | None,
    buckets: int | None,
    plan: LoadPlan,
    settings: LoadSettings,
) -> Changelog:
    """Return what the table keeps, as its first run decided. Raises OttlaError on a difference."""
    kept = _known_or_new(before, kind, buckets, plan)
    if kept.keeps == "history" and (settings.null_bad_timestamps or settings.dead_timestamps):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a history needs the time of each record: it can't take records whose timestamp does "
            "not fit (on_bad_timestamp is fail)",
        )
    return kept


def _known_or_new(
    before: Manifest | None, kind: Keeps | None, buckets: int | None, plan: LoadPlan
) -> Changelog:
    if before is None or before.changelog is None:
        if buckets is not None and not 0 < buckets <= _BUCKETS_MOST:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"a table has 1 to {_BUCKETS_MOST} buckets, not {buckets}",
            )
        return Changelog(kind or "latest", buckets or _buckets_for(plan))
    known = before.changelog
    if kind not in (None, known.keeps) or buckets not in (None, known.buckets):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"this table keeps the {known.keeps} of each key, in {known.buckets} buckets; make "
            "another one in a folder of its own",
        )
    return known


def _buckets_for(plan: LoadPlan) -> int:
    log_bytes = sum(sized.size_bytes for sized in plan.ranges)
    return min(_BUCKETS_MOST, max(_BUCKETS_LEAST, -(-log_bytes // _BUCKET_BYTES)))
