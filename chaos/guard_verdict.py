"""Whether brokers went by the newest ACLs and passwords: reads what `chaos.guard` wrote down.

Where no fault lasts, an answer that was asked for later than `SOON_S` after a change was
acknowledged goes by that change. While one lasts, a broker that it keeps from the store goes by the
rules it has; such answers are counted, and how late the last one was.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.gaps import Moment

# Notices take milliseconds; a machine that others share may stand still for seconds.
SOON_S = 5.0


@dataclass(slots=True)
class GuardVerdict:
    """What the guard saw."""

    changes: int = 0
    passwords: int = 0
    answers: int = 0
    logins: int = 0
    # Violations, in words.
    stale: list[str] = field(default_factory=list)
    # Answers by older rules within `SOON_S`, or while a fault lasted, and the age of the oldest.
    late: int = 0
    late_max_s: float = 0.0
    late_by_fault: int = 0
    late_by_fault_max_s: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.stale

    def rows(self) -> list[str]:
        """For the table of a run."""
        return [
            f"{'rules changed':<28} {self.changes:,}, passwords {self.passwords:,}",
            f"{'answers by rules':<28} {self.answers:,}, logins tried {self.logins:,}",
            f"{'by older rules':<28} {len(self.stale)} wrongly;"
            f" {self.late} within {SOON_S:.0f} s (the last after {self.late_max_s:.3f} s);"
            f" {self.late_by_fault} while a fault lasted"
            f" (the last after {self.late_by_fault_max_s:.1f} s)",
            *(f"  {line}" for line in self.stale[:10]),
        ]


def judge_guard(file: Path, moments: Sequence[Moment]) -> GuardVerdict:
    """Judge the notes of a guard by the changes that were acknowledged."""
    lines = [line for line in file.read_text(encoding="ascii").splitlines() if line.endswith("}")]
    notes = [json.loads(line) for line in lines]
    verdict = GuardVerdict()
    changes = [note for note in notes if note["what"] == "change"]
    attempts = sorted(note["begin_s"] for note in notes if note["what"] == "attempt")
    verdict.changes = len(changes)
    verdict.passwords = sum(note["what"] == "password" for note in notes)
    acknowledged = [note["end_s"] for note in changes]
    for note in notes:
        if note["what"] == "answer":
            verdict.answers += 1
            number = bisect_right(acknowledged, note["begin_s"]) - 1
            # Between an attempt and its acknowledgement either answer is right.
            begun = bisect_right(attempts, note["end_s"])
            if number >= 0 and begun == number + 1:
                _judge(verdict, note, changes[number], moments)
        elif note["what"] == "login":
            verdict.logins += 1
            if note["is_old"] and note["answer"] == "accepted":
                _count(verdict, "login by the old password", note, note["acknowledged_s"], moments)
    return verdict


def _judge(
    verdict: GuardVerdict, note: dict[str, Any], change: dict[str, Any], moments: Sequence[Moment]
) -> None:
    if note["is_denied"] != change["denies"]:
        said = "denied" if note["is_denied"] else "allowed"
        _count(verdict, said, note, change["end_s"], moments)


def _count(
    verdict: GuardVerdict,
    said: str,
    note: dict[str, Any],
    acknowledged_s: float,
    moments: Sequence[Moment],
) -> None:
    age_s = note["begin_s"] - acknowledged_s
    if age_s <= SOON_S:
        verdict.late += 1
        verdict.late_max_s = max(verdict.late_max_s, age_s)
        return
    # A fault may have kept the broker from the store at any time since the change.
    during = [m for m in moments if m.begin_s <= note["end_s"] and m.end_s >= acknowledged_s]
    if during and note["begin_s"] <= during[-1].end_s + SOON_S:
        verdict.late_by_fault += 1
        verdict.late_by_fault_max_s = max(verdict.late_by_fault_max_s, age_s)
        return
    verdict.stale.append(f"broker {note['broker']}: {said}, {age_s:.1f} s after the change")
