"""docs/performance.md, written from the figures of `python -m bench NAME... --page`.

docs/performance.json keeps the newest figures of each measurement, with the machine they were
measured on.
"""

import importlib
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.figures import AT_LEAST, Figure, as_json, number
from rig.paths import ROOT

_KEPT = ROOT / "docs" / "performance.json"
_PAGE = ROOT / "docs" / "performance.md"
_OPENING = (
    "# Performance\n\n"
    "Written by `python -m bench NAME --page`, which measures Ottla and, where Java is installed,"
    " Apache Kafka in alternating rounds of one run. Machines are virtual and shared, so compare"
    " the ratios rather than the absolute figures. Each section names its command, its day and its"
    ' machine: "loop" is how many turns of an empty loop one core makes in Python, "fsync" the'
    ' time to flush 4 KiB. Figures are medians. "Required" is what the project wants to reach;'
    " **short** marks what it does not.\n"
)


def write(figures: Mapping[str, Sequence[Figure]], machine: dict[str, Any]) -> None:
    """Keep the figures of these measurements, by name, and write the page of all kept ones."""
    kept = json.loads(_KEPT.read_text()) if _KEPT.exists() else {}
    for name, found in figures.items():
        kept[name] = {"machine": machine, "figures": as_json(found)}
    _KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    _PAGE.write_text("\n".join([_OPENING, *(_section(name, kept[name]) for name in kept)]))


def _section(name: str, measured: dict[str, Any]) -> str:
    machine = measured["machine"]
    summary = (importlib.import_module(f"bench.{name}").__doc__ or "").partition("\n\n")[0]
    lines = [
        f"## {name.replace('_', ' ').capitalize()}",
        "",
        " ".join(summary.split()),
        "",
        f"`python -m bench {name}`, {machine['utc'][:10]}: {machine['cores']} cores, Python "
        f"{machine['python']}, loop {machine['loop_per_s'] / 1e6:.0f} M/s, fsync "
        f"{machine['fsync_ms']:.2f} ms.",
        "",
        "| figure | Ottla | other side | measured | required |",
        "|---|---|---|---|---|",
        *(_row(figure) for figure in measured["figures"]),
        "",
    ]
    return "\n".join(lines)


def _row(figure: dict[str, Any]) -> str:
    ours, theirs = _sides(figure["details"])
    bound = figure["bound"]
    required = ""
    if bound is not None:
        required = f"{'at least' if figure['sense'] == AT_LEAST else 'at most'} {number(bound)}"
        required += "" if figure["met"] else " (**short**)"
    measured = f"{number(figure['value'])} {figure['unit']}"
    return f"| {' | '.join([figure['name'], ours, theirs, measured, required])} |"


def _sides(details: dict[str, Any]) -> tuple[str, str]:
    """Return the medians of Ottla and of the other side, empty where there is none."""
    unit = details.get("unit", "")
    shown = {
        side: f"{number(statistics.median(values))} {unit}".strip()
        for side, values in details.items()
        if isinstance(values, list)
    }
    ours = shown.pop("ottla", "")
    return ours, "; ".join(f"{side}: {value}" for side, value in shown.items())
