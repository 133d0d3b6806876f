"""What a process has used so far, whoever started it: CPU and memory, as the kernel counts."""

import os
from contextlib import suppress
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads so far; children not counted."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def rss_bytes(pid: int) -> int:
    """Memory resident now, what it shares with others included."""
    return _kib(Path(f"/proc/{pid}/status"), "VmRSS") * 1024


def rss_peak_bytes(pid: int) -> int:
    """Most memory ever resident."""
    return _kib(Path(f"/proc/{pid}/status"), "VmHWM") * 1024


def proportional_bytes(pid: int) -> int:
    """Memory resident now, where a page that n processes share counts for one n-th."""
    return _kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss") * 1024


def children(pid: int) -> list[int]:
    """The processes it started that still run, in the order of their start."""
    found = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda path: int(path.name)):
        with suppress(FileNotFoundError, ProcessLookupError):  # A thread that has ended meanwhile.
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def runs(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def _kib(file: Path, field: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise ProcessLookupError(f"{field} is not told in {file}")
