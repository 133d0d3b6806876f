"""What a run showed: the history's anomalies, and whether the replicas are the same bytes."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from ottla.testing.history.checker import Verdict, check
from ottla.testing.history.operation import Operation, from_lines


def read(histories: Iterable[Path]) -> list[Operation]:
    """All processes' histories together; a last line cut off by a kill is left out."""
    operations: list[Operation] = []
    for file in histories:
        lines = file.read_text(encoding="ascii").splitlines(keepends=True)
        operations += from_lines(line for line in lines if line.endswith("\n"))
    operations.sort(key=lambda operation: operation.begin_s)
    return operations


def judge(operations: Sequence[Operation]) -> Verdict:
    """Check them. A history without a last read would let every loss pass, so there must be one."""
    final = [op for op in operations if op.f == "final" and op.outcome == "ok"]
    assert final, "nobody has read everything in the end"
    return check(operations)


def replicas_differ(folders: Iterable[Path], topic: str) -> list[str]:
    """Names of partitions whose log files are not the same bytes in each folder."""
    digests: dict[str, set[str]] = {}
    for folder in folders:
        for partition in sorted(folder.glob(f"{topic}-*")):
            digest = hashlib.sha256()
            for segment in sorted(partition.glob("*.log")):
                digest.update(segment.read_bytes())
            digests.setdefault(partition.name, set()).add(digest.hexdigest())
    return [name for name, found in digests.items() if len(found) > 1]


def unexpected(logs: Iterable[Path]) -> list[str]:
    """Lines that brokers log where something happened that their authors did not foresee."""
    return [
        f"{log.stem}: {line}"
        for log in logs
        for line in log.read_text(errors="replace").splitlines()
        if "unexpected" in line or line.startswith("Traceback") or "AssertionError" in line
    ]
