"""Worlds whose ACLs and users change while faults last: brokers go by the newest ones."""

import pytest
from verify.simulation.decisions import Choice
from verify.simulation.judging.report import Report
from verify.simulation.judging.table import events, wrongs
from verify.simulation.run import simulate_seed
from verify.simulation.worlds.secure import draw_secure

from . import secure_mutants as mutants
from .mutants import Mutate

SECONDS = 10.0
# Each broker loses the store for a while, several times; one dies, and a controller does.
TROUBLE = [
    *(Choice(500 + 900 * number, "store_cut", number, 0, 700) for number in range(10)),
    Choice(3_000, "kill", 2, 0, 500),
    Choice(7_500, "kill_controller", 0, 0, 500),
]

# A broker whose clock is an hour ahead deletes notices before the others have read them.
AHEAD = [Choice(400, "clock_jump", 1, 100), *TROUBLE]


def run(decisions: list[Choice]) -> Report:
    # Two of the first eight seeds find a missed notice, which the next change hides.
    seed = 2 if decisions is AHEAD else 3
    profile = draw_secure(seed, brokers=3)
    return simulate_seed(seed, seconds=SECONDS, profile=profile, decisions=decisions)


def test_brokers_go_by_the_newest_rules_whatever_fails() -> None:
    """And the law is about something: topics were denied and allowed while brokers were away."""
    report = run(TROUBLE)
    assert report.is_good, f"{events(report)}\n{wrongs(report)}"
    assert report.sometimes["rules changed"] >= 5
    assert report.sometimes["denied"] > 10
    assert report.sometimes["allowed"] > 10


@pytest.mark.parametrize(
    ("mutate", "decisions", "kind"),
    [
        (mutants.notifications_are_lost, TROUBLE, "stale rules"),
        (mutants.what_came_while_away_is_lost, TROUBLE, "stale rules"),
        (mutants.users_are_read_at_the_start_only, TROUBLE, "stale rules"),
        (mutants.decisions_outlive_rules, [], "stale rules"),
        (mutants.connections_outlive_rules, [], "stale answer"),
        (mutants.missed_notices_are_not_noticed, AHEAD, "stale rules"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broker_that_goes_by_older_rules_is_found(
    mutate: Mutate, decisions: list[Choice], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By lost notifications, by rules kept over an outage, by what is remembered for too long."""
    mutate(monkeypatch)
    assert kind in run(decisions).kinds()
