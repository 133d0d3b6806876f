"""Ways to make 400 new bytes in each of many files durable: what the flush journal was chosen by.

An fsync for each file, by one thread and by eight; one `syncfs` of the whole file system; one file
that takes all of it, with one fsync.
"""

import ctypes
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.figures import Figure, Scale, spread

_BYTES = 400
_THREADS = 8


def measure(scale: Scale) -> list[Figure]:
    figures = []
    for files in (1, 10, 100, 1000):
        for way, times_ms in _times(files, scale.pick(20, 5)).items():
            name = f"{files:,} files, {_BYTES} bytes each: {way}"
            figure = Figure(name, statistics.median(times_ms), "ms", note=spread(times_ms))
            print(f"   {figure.name}: {figure.note}", flush=True)
            figures.append(figure)
    return figures


def _times(files: int, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each way, in turn, in one folder."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-", dir=Path.cwd()))
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    content = os.urandom(_BYTES)
    descriptors = []
    for number in range(files):
        (folder / str(number)).mkdir()
        descriptors.append(os.open(folder / str(number) / "log", flags))
    journal, whole = os.open(folder / "journal", flags), os.open(folder, os.O_RDONLY)
    library = ctypes.CDLL(None)
    with ThreadPoolExecutor(_THREADS) as pool:
        ways: dict[str, Callable[[], object]] = {
            "fsync of each": lambda: _flush_each(descriptors),
            f"fsync of each by {_THREADS} threads": lambda: list(
                pool.map(_flush_each, [descriptors[n::_THREADS] for n in range(_THREADS)])
            ),
            "one syncfs": lambda: library.syncfs(whole),
            "one journal": lambda: _write_journal(descriptors, journal),
        }
        times_ms: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(rounds + 1):
            for way, flush in ways.items():
                for descriptor in descriptors:
                    os.write(descriptor, content)
                began_s = time.perf_counter()
                flush()
                if number:
                    times_ms[way].append((time.perf_counter() - began_s) * 1000)
                _flush_each(descriptors)
    for descriptor in (*descriptors, journal, whole):
        os.close(descriptor)
    shutil.rmtree(folder)
    return times_ms


def _flush_each(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.fdatasync(descriptor)


def _write_journal(descriptors: list[int], journal: int) -> None:
    ends = [os.pread(one, _BYTES, os.fstat(one).st_size - _BYTES) for one in descriptors]
    os.write(journal, b"".join(ends))
    os.fdatasync(journal)
