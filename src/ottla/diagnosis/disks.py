"""Finds log directories that are full or have failed, in sentences. Pure."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode
from ottla.base.quantities import size_words
from ottla.client.admin.logs import LogDirectory
from ottla.diagnosis.findings import Finding, Trouble
from ottla.storage.disk.reserve import reserve_bytes

# A volume with less space than a batch may need, beyond its reserve, refuses appends.
_BATCH_BYTES = 1 << 20
# With less than this, and less than this share of the volume, the disk is almost full.
_SCARCE_BYTES = 1 << 30
_SCARCE_SHARE = 0.02

_MAKE_ROOM = (
    "free space on that disk, shorten retention (`ottla config set topic NAME retention.ms=1d`) "
    "or delete a topic; what is deleted leaves a full disk within seconds, others after "
    "file.delete.delay.ms"
)


def disk_findings(directories: Iterable[LogDirectory]) -> list[Finding]:
    """Log directories that refuse appends, or soon will: offline, full, almost full."""
    found = [_finding(one) for one in directories]
    return [finding for finding in found if finding is not None]


def _finding(one: LogDirectory) -> Finding | None:
    where = f"{one.path} of broker {one.broker_id}"
    if one.error is not ErrorCode.NONE:
        return Finding(
            Trouble.DIRECTORY_OFFLINE,
            f"{where} failed and serves nothing",
            "see the broker's log for what failed, check the disk, then restart the broker",
            (),
        )
    usable, total = one.usable_bytes, one.total_bytes
    if usable < 0:
        return None  # A broker that does not say: DescribeLogDirs before version 4.
    reserve = reserve_bytes(total)
    if usable < reserve + _BATCH_BYTES:
        return Finding(
            Trouble.DISK_FULL,
            f"{where} has {size_words(usable)} left, and {size_words(reserve)} are reserved for "
            "deletions and restarts: what needs more is refused with KAFKA_STORAGE_ERROR, reads "
            "go on",
            f"{_MAKE_ROOM}. Appends are accepted again once there is room",
            (),
        )
    if usable < max(min(_SCARCE_BYTES, total * _SCARCE_SHARE), 2 * reserve):
        share = f"{usable / total:.1%} of {size_words(total)}"
        return Finding(
            Trouble.DISK_ALMOST_FULL,
            f"{where} has {size_words(usable)} left, {share}: appends are refused when it is full",
            _MAKE_ROOM,
            (),
        )
    return None
