"""How long a producer waits when the leader of its partition dies, hangs, or is moved in order.

A record every 5 ms, acks=all, three replicas, a librdkafka that looks for leaders quickly. The
gap is the longest time between two acknowledgements. Afterwards every acknowledged record must
be there once. Each cluster has the machine to itself.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.clusters import create_topic, each_alone
from bench.figures import AT_MOST, Figure, Scale, spread
from bench.leaders import controller, elect_preferred, leader, move_leader, prepare_move
from bench.steady_load import Load, load
from rig.clusters import Cluster, Member


@dataclass(frozen=True, slots=True)
class Case:
    """What happens to the leader. `act` does it once and gives the gap in milliseconds."""

    name: str
    bound_ms: float
    median_bound_ms: float | None
    times: tuple[int, int]
    act: Callable[[Load], float]


def measure(scale: Scale) -> list[Figure]:
    results = each_alone(lambda cluster: _all_cases(cluster, scale))
    figures: list[Figure] = []
    for case in _CASES:
        gaps = {side: rounds[0][case.name] for side, rounds in results.items()}
        note = "; ".join(f"{side} {spread(each)} ms" for side, each in gaps.items())
        mine = gaps["ottla"]
        sides: dict[str, Any] = {**gaps, "unit": "ms"}
        if case.median_bound_ms is not None:
            median = statistics.median(mine)
            figures.append(
                Figure(
                    f"{case.name}: median", median, "ms", AT_MOST, case.median_bound_ms, note, sides
                )
            )
        figures.append(
            Figure(f"{case.name}: longest", max(mine), "ms", AT_MOST, case.bound_ms, note, sides)
        )
    for what in ("lost", "twice", "failed"):
        total = {side: rounds[0][what] for side, rounds in results.items()}
        note = f"of {results['ottla'][0]['acknowledged']:,} acknowledged; all sides: {total}"
        figures.append(
            Figure(f"records {what} in all of these", total["ottla"], "", AT_MOST, 0, note)
        )
    return figures


def _all_cases(cluster: Cluster, scale: Scale) -> dict[str, Any]:
    """The gaps of each case by its name, and what became of the records."""
    result: dict[str, Any] = {"lost": 0, "twice": 0, "failed": 0, "acknowledged": 0}
    for case in _CASES:
        times = 1 if cluster.name == "kafka" else scale.pick(*case.times)
        result[case.name] = _repeat(cluster, case, times, result)
    return result


def _repeat(cluster: Cluster, case: Case, times: int, result: dict[str, Any]) -> list[float]:
    topic = create_topic(cluster)
    with load(cluster, topic) as sending:
        gaps = [case.act(sending) for _ in range(times)]
    print(f"   {cluster.name:<6} {case.name}: {spread(gaps)} ms; {sending.outcome}", flush=True)
    for what in ("lost", "twice", "failed", "acknowledged"):
        result[what] += sending.outcome[what]
    return gaps


def _gap(sending: Load, disturb: Callable[[], None]) -> float:
    began_ns = time.monotonic_ns()
    disturb()
    sending.wait_for_flow(time.monotonic_ns(), 1.0)
    return sending.longest_gap_ms(began_ns)


def _kill_leader(sending: Load) -> float:
    return _kill(sending, dead_controller=False)


def _kill_leader_and_controller(sending: Load) -> float:
    return _kill(sending, dead_controller=True)


def _kill(sending: Load, *, dead_controller: bool) -> float:
    cluster, topic = sending.cluster, sending.topic
    _settle(sending)
    in_office = controller(cluster)
    if (leader(cluster, topic) == in_office) != dead_controller:
        other = next(number for number in cluster.members if number != in_office)
        move_leader(cluster, topic, in_office if dead_controller else other)
        sending.wait_for_flow(time.monotonic_ns())
    victim = cluster.members[leader(cluster, topic)]
    gap_ms = _gap(sending, victim.kill)
    _come_back(sending, victim)
    return gap_ms


def _pause_leader(sending: Load) -> float:
    _settle(sending)
    victim = sending.cluster.members[leader(sending.cluster, sending.topic)]
    gap_ms = _gap(sending, victim.pause)
    victim.resume()
    _settle(sending)
    return gap_ms


def _move_leader(sending: Load) -> float:
    cluster, topic = sending.cluster, sending.topic
    _settle(sending)
    now = leader(cluster, topic)
    prepare_move(cluster, topic, next(number for number in cluster.members if number != now))
    sending.wait_for_flow(time.monotonic_ns())
    return _gap(sending, lambda: elect_preferred(cluster, topic))


def _rolling_restart(sending: Load) -> float:
    gaps = []
    for member in sending.cluster.members.values():
        _settle(sending)
        gaps.append(_gap(sending, member.stop))
        gaps.append(_gap(sending, lambda member=member: _come_back(sending, member)))  # type: ignore[misc]
    return max(gaps)


def _come_back(sending: Load, member: Member) -> None:
    member.start()
    _settle(sending)


def _settle(sending: Load) -> None:
    sending.cluster.wait_until_formed()
    sending.cluster.wait_until_in_sync(sending.topic)
    sending.wait_for_flow(time.monotonic_ns())


_CASES = [
    Case("gap after kill -9 of the leader", 1000, 300, (20, 3), _kill_leader),
    Case(
        "gap after kill -9 of a leader that is also controller",
        1000,
        300,
        (20, 3),
        _kill_leader_and_controller,
    ),
    Case("gap after SIGSTOP of the leader", 4000, None, (5, 1), _pause_leader),
    Case("gap at a planned move of the leader", 100, None, (20, 3), _move_leader),
    Case("gap in a rolling restart", 100, None, (3, 1), _rolling_restart),
]
