"""What a run showed: the history's anomalies, and whether the replicas are the same bytes."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from verify.history.checker import HistoryVerdict, check

from chaos.gaps import Moment, Waits
from chaos.histories import GROUP, parts, read

_CHUNK = 1 << 20


def judge(
    folder: Path, moments: Sequence[Moment], writers: Collection[str]
) -> tuple[HistoryVerdict, Waits]:
    """Check the histories in a folder, partition by partition, and how long writers waited."""
    whole, waits = HistoryVerdict(), Waits(moments)
    for part in parts(folder):
        operations = read(folder, part)
        if part != GROUP:
            final = [op for op in operations if op.f == "final" and op.outcome == "ok"]
            # A history without a last read would let every loss pass.
            assert final, f"nobody has read everything of {part} in the end"
            waits.take(operations, writers)
        verdict = check(operations)
        whole.anomalies += verdict.anomalies
        whole.allowed += verdict.allowed
        whole.operations += verdict.operations
        whole.records_acknowledged += verdict.records_acknowledged
    return whole, waits


def replicas_differ(folders: Iterable[Path], topic: str) -> list[str]:
    """Names of partitions whose log files are not the same bytes in each folder."""
    digests: dict[str, set[str]] = {}
    for folder in folders:
        for partition in sorted(folder.glob(f"{topic}-*")):
            digest = hashlib.sha256()
            for segment in sorted(partition.glob("*.log")):
                with segment.open("rb") as file:
                    while chunk := file.read(_CHUNK):
                        digest.update(chunk)
            digests.setdefault(partition.name, set()).add(digest.hexdigest())
    return [name for name, found in digests.items() if len(found) > 1]


def fatal(folder: Path) -> list[str]:
    """The fatal errors that idempotent producers noted."""
    return [
        f"{file.stem}: {line}"
        for file in sorted(folder.rglob("*.fatal"))
        for line in file.read_text(errors="replace").splitlines()
    ]


def unexpected(logs: Iterable[Path]) -> list[str]:
    """Lines that brokers log where something happened that their authors did not foresee."""
    return [
        f"{log.stem}: {line}"
        for log in logs
        for line in log.read_text(errors="replace").splitlines()
        if "unexpected" in line or line.startswith("Traceback") or "AssertionError" in line
    ]
