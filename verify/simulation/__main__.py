"""`python -m ottla.testing.simulation --seed 7 --minutes 1`: run seeds, and shrink what fails.

`--minutes` are minutes of virtual time over all seeds. With `--seconds` each seed lasts so long.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from verify.simulation.decisions import Choice, from_json, to_json
from verify.simulation.judging.report import Report
from verify.simulation.judging.table import events, repeatable, summary, wrongs
from verify.simulation.run import simulate_seed
from verify.simulation.shrinking import Shrinker
from verify.simulation.worlds.aimed import AIMED_SEED_S, draw_aimed
from verify.simulation.worlds.calm import CALM_SEED_S, draw_calm
from verify.simulation.worlds.exact import draw_exact
from verify.simulation.worlds.idle import IDLE_SEED_S, draw_idle
from verify.simulation.worlds.profile import draw
from verify.simulation.worlds.secure import SECURE_SEED_S, draw_secure

_DRAWN = {
    "": draw,
    "calm": draw_calm,
    "exact": draw_exact,
    "aimed": draw_aimed,
    "idle": draw_idle,
    "secure": draw_secure,
}
_SECONDS = {
    "calm": CALM_SEED_S,
    "exact": 30.0,
    "aimed": AIMED_SEED_S,
    "idle": IDLE_SEED_S,
    "secure": SECURE_SEED_S,
}


def main(arguments: list[str]) -> int:
    """Run seeds one after the other; 1 if any failed."""
    options = _parse(arguments)
    say = _say
    began_s = time.perf_counter()
    total: Counter[str] = Counter()
    virtual_s, seed, bad, acknowledged = 0.0, options.seed, 0, 0
    while _goes_on(options, seed, virtual_s):
        report = _run(options, seed)
        virtual_s += report.virtual_s
        acknowledged += report.records_acknowledged
        total += report.sometimes
        say(summary(report))
        if options.repeatable:
            say(repeatable(report))
        if options.events:
            say(events(report))
        if not report.is_good:
            bad += 1
            say(wrongs(report))
            _keep_history(options, report)
            if options.shrink:
                _shrink(options, report)
        seed += 1
    real_s = time.perf_counter() - began_s
    reached = ", ".join(f"{count} {what}" for what, count in sorted(total.items()))
    say(
        f"{seed - options.seed} seeds, {bad} bad; {virtual_s / 3600:.2f} virtual hours in"
        f" {real_s:.0f} s ({virtual_s / real_s:.1f}x); {acknowledged} records acknowledged"
    )
    say(f"reached: {reached}")
    return 1 if bad else 0


def _goes_on(options: argparse.Namespace, seed: int, virtual_s: float) -> bool:
    if options.count is not None:
        return bool(seed < options.seed + options.count)
    return bool(virtual_s < options.minutes * 60)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ottla.testing.simulation")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--minutes", type=float, default=1.0, help="virtual minutes over all")
    parser.add_argument("--seconds", type=float, default=None, help="of trouble, in each seed")
    parser.add_argument("--exact", action="store_true", help="worlds with transactions")
    parser.add_argument("--aimed", action="store_true", help="those whose troubles hit decisions")
    parser.add_argument("--calm", action="store_true", help="long, calm worlds, as the soak has")
    parser.add_argument("--idle", action="store_true", help="worlds with partitions that idle")
    parser.add_argument("--secure", action="store_true", help="worlds whose ACLs and users change")
    parser.add_argument("--brokers", type=int, default=None, help="instead of what seeds draw")
    parser.add_argument("--decisions", default=None, help="those to replay, as they were printed")
    parser.add_argument("--count", type=int, default=None, help="of seeds, instead of minutes")
    parser.add_argument("--repeatable", action="store_true", help="a line that never differs, too")
    parser.add_argument("--events", action="store_true", help="print all that happened")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--history", default=None, help="folder for histories of failing seeds")
    options = parser.parse_args(arguments)
    if options.seconds is None:
        options.seconds = _SECONDS.get(_world(options), 30.0)
    return options


def _world(options: argparse.Namespace) -> str:
    return next((world for world in _SECONDS if getattr(options, world)), "")


def _run(options: argparse.Namespace, seed: int, decisions: list[Choice] | None = None) -> Report:
    if decisions is None and options.decisions is not None:
        decisions = from_json(options.decisions)
    profile = _DRAWN[_world(options)](seed, options.brokers)
    return simulate_seed(seed, seconds=options.seconds, profile=profile, decisions=decisions)


def _shrink(options: argparse.Namespace, report: Report) -> None:
    """Find a smallest list of decisions that fails in the same way, and print its run."""
    kinds = report.kinds()
    assert isinstance(report.seed, int)
    seed = report.seed

    def fails(decisions: list[Choice]) -> bool:
        return bool(kinds & _run(options, seed, decisions).kinds())

    small = Shrinker(fails).shrink(report.decisions)
    last = _run(options, seed, small)
    _say(f"smallest: {len(small)} of {len(report.decisions)} decisions")
    _say(events(last))
    _say(wrongs(last, 5))
    world = f"--{_world(options)} " if _world(options) else ""
    _say(
        f"again: {world}--seed {seed} --seconds {options.seconds:g} --decisions '{to_json(small)}'"
    )


def _keep_history(options: argparse.Namespace, report: Report) -> None:
    if options.history is not None:
        folder = Path(options.history)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed-{report.seed}.jsonl").write_text("\n".join(report.history) + "\n")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
