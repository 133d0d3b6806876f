"""`python -m verify.simulation.soak --journal soak.jsonl --hours 24`: worlds for hours.

Each seed's outcome is a line of the journal. A soak that was ended goes on behind the last of them;
totals are of the whole journal, and by the name of the code that ran (`--code`).
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from verify.simulation.judging.report import Report
from verify.simulation.judging.table import events, wrongs
from verify.simulation.run import simulate_seed
from verify.simulation.worlds.calm import CALM_SEED_S, draw_calm
from verify.simulation.worlds.exact import draw_exact

_TELL_EVERY = 6


def main(arguments: list[str]) -> int:
    """Run seeds until the journal has its hours; 1 where any seed of it went wrong."""
    options = _parse(arguments)
    journal = Path(options.journal)
    lines = _read(journal)
    while sum(line["virtual_s"] for line in lines) < options.hours * 3600:
        seed = max((line["seed"] + 1 for line in lines), default=options.seed)
        began_s = time.process_time()
        profile = (draw_exact if options.exact else draw_calm)(seed)
        report = simulate_seed(seed, seconds=options.seconds, profile=profile)
        line = _line(report, options.code, time.process_time() - began_s)
        lines.append(line)
        with journal.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if not report.is_good:
            _keep(journal, report)
        if len(lines) % _TELL_EVERY == 0 or not report.is_good:
            _say(f"{time.strftime('%H:%M:%S')} up to seed {seed}: {totals(lines)}")
    for code in dict.fromkeys(line["code"] for line in lines):
        _say(f"{code}: {totals([line for line in lines if line['code'] == code])}")
    _say(f"all: {totals(lines)}")
    return 1 if any(line["wrongs"] for line in lines) else 0


def totals(lines: list[dict[str, Any]]) -> str:
    """What a journal adds up to, in one line."""
    sights: Counter[str] = Counter()
    for line in lines:
        sights.update(line["sights"])
    virtual_s, real_s, cpu_s = (
        sum(line[name] for line in lines) for name in ("virtual_s", "real_s", "cpu_s")
    )
    deaths = sights["killed"] + sights["loses power"]
    copied = sights["transaction committed"]
    return (
        f"{len(lines)} seeds, {virtual_s / 3600:.2f} simulated hours,"
        f" {sights['election']} elections, {deaths} crashes"
        f" ({sights['killed']} killed, {sights['loses power']} power cuts),"
        f" {sum(line['acknowledged'] for line in lines)} records acknowledged,"
        + (f" {copied} transactions committed," if copied else "")
        + f" {sum(1 for line in lines if line['wrongs'])} bad,"
        f" {virtual_s / real_s:.1f}x ({virtual_s / cpu_s:.1f}x of processor time)"
    )


def _line(report: Report, code: str, cpu_s: float) -> dict[str, Any]:
    return {
        "seed": report.seed,
        "code": code,
        "hash": report.digest,
        "virtual_s": round(report.virtual_s, 3),
        "real_s": round(report.real_s, 3),
        "cpu_s": round(cpu_s, 3),
        "acknowledged": report.records_acknowledged,
        "sights": dict(sorted(report.sometimes.items())),
        "wrongs": report.wrongs()[:20],
    }


def _read(journal: Path) -> list[dict[str, Any]]:
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text().splitlines()]


def _keep(journal: Path, report: Report) -> None:
    """What went wrong, for people: beside the journal."""
    text = f"{wrongs(report)}\n\n{events(report)}\n\n" + "\n".join(report.history)
    journal.with_name(f"{journal.stem}-seed-{report.seed}.txt").write_text(text + "\n")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m verify.simulation.soak")
    parser.add_argument("--journal", required=True, help="file of a line for each seed")
    parser.add_argument("--hours", type=float, default=24.0, help="of virtual time, in all")
    parser.add_argument("--exact", action="store_true", help="worlds with transactions instead")
    parser.add_argument("--seconds", type=float, default=CALM_SEED_S, help="in each seed")
    parser.add_argument("--seed", type=int, default=1, help="the first, of a new journal")
    parser.add_argument("--code", default="this code", help="what the code is called in totals")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
