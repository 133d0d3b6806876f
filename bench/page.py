"""docs/performance.md and the figures of README, written by `python -m bench NAME... --page`.

docs/performance.json keeps the newest figures of each measurement, with the machine they were
measured on. docs/performance.svg is the plot in README.
"""

import html
import importlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.figures import AT_LEAST, Figure, as_json, number
from rig.paths import ROOT

_KEPT = ROOT / "docs" / "performance.json"
_PAGE = ROOT / "docs" / "performance.md"
_PLOT = ROOT / "docs" / "performance.svg"
_README = ROOT / "README.md"
_README_TABLE = "| figure | Ottla | other side | better by |\n|---|---|---|---|\n"
# What stands before and after plot and table in README.
_README_HEADING = "\n## Figures\n"
_README_END = "All were measured on one machine"
_README_PLOT = "![How many times better Ottla is than the other side](docs/performance.svg)"
# The rows of README: what it says, the measurement, and the name of its figure.
_ROWS = (
    ("produce requests/s, one connection, 8 KiB batches", "produce", "produce 8 KiB"),
    ("broker CPU for a GB of them", "produce", "produce 8 KiB, broker CPU per GB"),
    (
        "librdkafka producer, acks=all, 100 partitions, on disk (Kafka: no fsync)",
        "many_partitions",
        "librdkafka, acks=all, 100 partitions",
    ),
    ("librdkafka consumer, catching up", "consume", "librdkafka consumer"),
    (
        "transactions of 100 records, on disk (Kafka: no fsync)",
        "transactions",
        "transactions of 100 records, librdkafka, flush policy group",
    ),
    (
        "gap after kill -9 of a leader, median",
        "failover",
        "gap after kill -9 of the leader: median",
    ),
    ("broker memory after producing", "produce", "resident memory after the produce runs"),
    (
        "lake load, 100-byte records (other side: Spark's connector)",
        "lake",
        "lake load / Spark's connector, 100 B",
    ),
)
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
    if all(measurement in kept for _, measurement, _ in _ROWS):
        _write_readme(kept)


def _write_readme(kept: dict[str, Any]) -> None:
    """Replace the table of README by the rows that have been measured, and draw the plot."""
    rows, bars = [], []
    for label, measurement, name in _ROWS:
        figures = kept.get(measurement, {"figures": []})["figures"]
        found = [one for one in figures if one["name"] == name and "unit" in one["details"]]
        if not found:
            raise LookupError(f"no measurement {measurement} has a figure {name!r} with sides")
        details = found[-1]["details"]
        medians = [statistics.median(each) for each in details.values() if isinstance(each, list)]
        better = ""
        if len(medians) == 2:
            is_less_better = found[-1]["sense"] != AT_LEAST
            bars.append((label, medians[is_less_better] / medians[not is_less_better]))
            better = f"{number(bars[-1][1])} ×"
        rows.append(f"| {' | '.join([label, *_sides(details), better])} |\n")
    before, _, rest = _README.read_text().partition(_README_HEADING)
    _, _, after = rest.partition(_README_END)
    shown = f"{_README_HEADING}\n{_README_PLOT}\n\n{_README_TABLE}{''.join(rows)}\n"
    _README.write_text(before + shown + _README_END + after)
    _PLOT.write_text(_drawn(bars))


def _drawn(bars: Sequence[tuple[str, float]]) -> str:
    """Return horizontal bars, on a logarithmic axis, that show how many times better Ottla is."""
    left, width, step = 440, 300, 30
    height = step * len(bars) + 40
    decades = math.log10(max([10.0, *(factor for _, factor in bars)]))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 80} {height}"'
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{left + width + 80}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="20" fill="#555">times better than the other side '
        "(logarithmic; the line is 1)</text>",
    ]
    for number_of, (label, factor) in enumerate(bars):
        y = 32 + number_of * step
        length = width * abs(math.log10(factor)) / decades
        x = left if factor >= 1 else left - length
        color = "#2a7f62" if factor >= 1 else "#b5523b"
        end = left + (length if factor >= 1 else 0) + 6
        lines += [
            f'<text x="{left - 12}" y="{y + 15}" text-anchor="end">{html.escape(label)}</text>',
            f'<rect x="{x:.0f}" y="{y}" width="{length:.0f}" height="20" fill="{color}"/>',
            f'<text x="{end:.0f}" y="{y + 15}">{number(factor)} ×</text>',
        ]
    lines.append(f'<path d="M{left} 28V{height - 8}" stroke="#333"/></svg>\n')
    return "\n".join(lines)


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
    named = [(side.replace("kafka", "Kafka"), value) for side, value in shown.items()]
    return ours, "; ".join(f"{side}: {value}" for side, value in named)
