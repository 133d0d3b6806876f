"""One run: a cluster, clients on a host of their own, faults in turn, and the judgement."""

import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.cluster import CLIENT, STORE, Cluster, cluster, wait_until
from chaos.faults import FAULTS
from chaos.verdict import judge, replicas_differ
from ottla.client import NewTopic, sync
from ottla.testing.history.checker import Verdict
from rig.process import Process, start

TOPIC = "chaos"
PARTITIONS = 3
_WRITERS = 2
# Longer than a session, so that what stops is taken for dead.
_BROKEN_S = {"stop": 6.0, "partition": 6.0, "one-way": 6.0, "kill": 1.0, "power": 1.0}
_CALM_S = 2.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Which faults, how often each, and under which load (records per second and producer)."""

    faults: Sequence[str]
    cycles: int
    seed: int
    rate: int
    store: str


@dataclass(slots=True)
class Outcome:
    """What happened, and what was found."""

    plan: Plan
    made: Counter[str] = field(default_factory=Counter)
    verdict: Verdict = field(default_factory=Verdict)
    different: list[str] = field(default_factory=list)
    # Healed and back in every ISR, in seconds.
    rejoin_s: list[float] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.verdict.is_valid and not self.different

    def table(self) -> str:
        """The figures, one a line."""
        verdict = self.verdict
        lines = [f"{name:<28} {count}" for name, count in sorted(self.made.items())]
        lines += [
            f"{'records acknowledged':<28} {verdict.records_acknowledged:,}",
            f"{'anomalies':<28} {len(verdict.anomalies)} {' '.join(verdict.names())}",
            f"{'replicas that differ':<28} {len(self.different)} {' '.join(self.different)}",
            f"{'longest time without ack':<28} {verdict.unavailable_s:.2f} s",
            f"{'back in sync after healing':<28} {max(self.rejoin_s, default=0):.1f} s at most",
        ]
        return "\n".join([*lines, *(str(anomaly) for anomaly in verdict.anomalies[:20])])


def run(plan: Plan, folder: Path, say: Callable[[str], None]) -> Outcome:
    """Break and heal as planned. Raises TimeoutError where the cluster does not come back."""
    rng = random.Random(plan.seed)
    outcome = Outcome(plan)
    with _store(plan, folder) as connect, cluster(folder, connect, {}) as brokers:
        _make_topic(brokers, folder)
        clients = _start_clients(brokers, folder, plan.rate)
        try:
            time.sleep(_CALM_S)
            for _ in range(plan.cycles):
                for name in plan.faults:
                    _break_and_heal(brokers, name, rng, outcome, say)
        finally:
            for client in clients:
                client.child.terminate()
        for client in clients:
            client.child.wait(120)
        wait_until("replicas are the same", lambda: not _different(brokers), 60)
        _ask(brokers, folder, "reader", "final", ["--final"]).child.wait(120)
        brokers.stop()
        outcome.different = _different(brokers)
        outcome.verdict = judge(sorted(folder.glob("*.history")))
    return outcome


def _break_and_heal(
    brokers: Cluster, name: str, rng: random.Random, outcome: Outcome, say: Callable[[str], None]
) -> None:
    fault = FAULTS[name]()
    say(f"{sum(outcome.made.values()) + 1:4}  {fault.make(brokers, rng)}")
    outcome.made[name] += 1
    time.sleep(_BROKEN_S[name])
    fault.heal(brokers)
    outcome.rejoin_s.append(wait_until("all are in sync", lambda: _all_in_sync(brokers)))
    time.sleep(_CALM_S * rng.random())


def _all_in_sync(brokers: Cluster) -> bool:
    with contextlib.suppress(Exception), _admin(brokers) as admin:
        (topic,) = admin.describe_topics([TOPIC])
        return all(len(partition.isr) == len(brokers.members) for partition in topic.partitions)
    return False


def _different(brokers: Cluster) -> list[str]:
    return replicas_differ([member.data for member in brokers.members.values()], TOPIC)


def _make_topic(brokers: Cluster, folder: Path) -> None:
    new = NewTopic(name=TOPIC, partitions=PARTITIONS, replication_factor=3)

    def made() -> bool:
        with contextlib.suppress(Exception), _admin(brokers) as admin:
            if TOPIC not in [topic.name for topic in admin.list_topics()]:
                admin.create_topics([new])
            return _all_in_sync(brokers)
        return False

    try:
        wait_until("the topic is there", made, 60)
    except TimeoutError:
        logs = "\n".join(m.log.read_text()[-3000:] for m in brokers.members.values())
        raise TimeoutError(f"no cluster; the brokers say (in {folder}):\n{logs}") from None


@contextlib.contextmanager
def _admin(brokers: Cluster) -> Iterator[sync.Admin]:
    with sync.Admin(brokers.bootstrap) as admin:
        yield admin


def _start_clients(brokers: Cluster, folder: Path, rate: int) -> list[Process]:
    writers = [
        _ask(brokers, folder, "writer", f"writer{number}", ["--rate", str(rate)])
        for number in range(_WRITERS)
    ]
    return [*writers, _ask(brokers, folder, "reader", "reader", [])]


def _ask(brokers: Cluster, folder: Path, module: str, name: str, options: Sequence[str]) -> Process:
    command = [*brokers.hosts.inside(CLIENT), sys.executable, "-m", f"chaos.{module}"]
    command += ["--name", name, "--bootstrap", brokers.bootstrap, "--topic", TOPIC]
    command += ["--partitions", str(PARTITIONS), "--history", str(folder / f"{name}.history")]
    return start([*command, *options], folder / f"{name}.log")


@contextlib.contextmanager
def _store(plan: Plan, folder: Path) -> Iterator[str]:
    assert plan.store == "sqlite", f"{STORE} {plan.store} comes next"
    yield f"sqlite://{folder}/store.sqlite"
