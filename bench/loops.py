"""The same broker on uvloop and on asyncio's own loop: produce of 8 KiB batches, and its CPU.

asyncio's loop runs where uvloop is not installed; here a module of that name refuses to be imported
(zuvloop needs Python 3.14, so it is not among the sides).
"""

import contextlib
import functools
import os
import statistics
import tempfile
from pathlib import Path

from bench import produce
from bench.figures import AT_LEAST, Figure, Scale, spread
from bench.sides import NO_FSYNC, alternate
from rig.broker import ottla

_KIB = 8


def measure(scale: Scale) -> list[Figure]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "uvloop.py").write_text("raise ImportError\n")
        path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        nodes = [
            stack.enter_context(ottla(settings=NO_FSYNC)),
            stack.enter_context(ottla(settings=NO_FSYNC, name="asyncio", env={"PYTHONPATH": path})),
        ]
        act = functools.partial(produce._run, kib=_KIB, seconds=scale.pick(3, 1))
        results = alternate(nodes, scale, act)
    figures = []
    for key, label in (("requests/s", "requests/s"), ("cpu_s_per_gb", "CPU s/GB")):
        sides = {name: [one[key] for one in each] for name, each in results.items()}
        value = statistics.median(sides["ottla"]) / statistics.median(sides["asyncio"])
        note = "; ".join(f"{name} {spread(values)}" for name, values in sides.items())
        figures.append(
            Figure(
                f"produce 8 KiB on uvloop, {label}",
                value,
                "× asyncio",
                AT_LEAST,
                None,
                note,
                {**sides, "unit": label},
            )
        )
    return figures
