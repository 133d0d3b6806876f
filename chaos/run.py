"""One run: a cluster, clients on a host of their own, faults in turn, and the judgement."""

import contextlib
import random
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from chaos import pauses
from chaos.cluster import CLIENT, TOPIC, UNJUDGED, Cluster, cluster, wait_until
from chaos.faults import FAULTS
from chaos.gaps import Moment
from chaos.guard import GUARDED
from chaos.guard_verdict import judge_guard
from chaos.outcome import Outcome, Plan
from chaos.secured import ADMIN, CLIENT_USER
from chaos.task import HASTY, INTERRUPTED, PATIENT, Task
from chaos.verdict import fatal, judge, replicas_differ, unexpected
from ottla.client import NewTopic
from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import AclOperation, AclResource, Permission
from rig.process import Process, start

PARTITIONS = 6
_CALM_S = 1.0
# Who reads millions of records to the end may share the machine with others.
_PATIENCE_S = 900.0
# What the clients may do; whom else, changes all the time.
_RULES = [
    Acl(ResourcePattern(kind, "*"), f"User:{CLIENT_USER}", "*", AclOperation.ALL, Permission.ALLOW)
    for kind in (AclResource.TOPIC, AclResource.GROUP, AclResource.TRANSACTIONAL_ID)
]
# Small segments, so that some are closed and carry indexes.
_TOPIC_SETTINGS = {"segment.bytes": "1048576"}


def run(plan: Plan, folder: Path, say: Callable[[str], None], outcome: Outcome) -> None:
    """Break and heal as planned, and fill in what it showed.

    Raises TimeoutError where the cluster does not come back. What is needed to find out why
    something went wrong stays in `folder`.
    """
    rng = random.Random(plan.seed)
    settings = {
        "log.flush.policy": plan.flush,
        # So that few partitions use the flush journal, too.
        "log.flush.journal.min.logs": "1",
        "min.insync.replicas": str(plan.min_isr),
    }
    with cluster(
        folder,
        plan.store,
        settings,
        clocks="clock" in plan.faults,
        tick_ms=plan.tick_ms,
        is_secure=plan.is_secure,
    ) as brokers:
        try:
            _break_under_load(brokers, folder, plan, rng, outcome, say)
            brokers.stop()
            outcome.different = _different(brokers)
            outcome.verdict, waits = judge(folder, outcome.moments, plan.writers)
            outcome.gaps_s = waits.of_partitions_s
            outcome.writer_gaps_s = waits.of_writers_s
            outcome.unexpected = unexpected([member.log for member in brokers.members.values()])
            if plan.is_secure:
                outcome.guard = judge_guard(folder / "guard.notes", outcome.moments)
            outcome.is_whole = True
        finally:
            outcome.fatal = fatal(folder)
            if not outcome.is_good:
                _keep_data(brokers, folder)


def _break_under_load(
    brokers: Cluster,
    folder: Path,
    plan: Plan,
    rng: random.Random,
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    """All faults, until all clients have ended and one has read everything."""
    _make_topics(brokers, folder)
    clients = _start_clients(brokers, folder, plan)
    try:
        # Who has not begun has nothing to lose.
        wait_until("all clients are at work", lambda: _at_work(folder, plan))
        brokers.wait_in_sync()
        until_s = time.monotonic() + plan.at_most_s
        for name in [*plan.faults] * plan.cycles:
            if time.monotonic() < until_s:
                _break_and_heal(brokers, name, rng, outcome, say)
                _require_alive(clients)
        time.sleep(_CALM_S)
    finally:
        for client in clients:
            client.child.terminate()
    for client in clients:
        _require_good_end(client)
    wait_until("replicas are the same", lambda: not _different(brokers), every_s=1.0)
    _require_good_end(_ask(brokers, folder, "final_reader", "final"))


def _keep_data(brokers: Cluster, folder: Path) -> None:
    """What is on the disks goes with them otherwise."""
    brokers.stop()
    for member in brokers.members.values():
        with contextlib.suppress(OSError, shutil.Error):
            shutil.copytree(member.data, folder / f"data{member.id}")


def _break_and_heal(
    brokers: Cluster, name: str, rng: random.Random, outcome: Outcome, say: Callable[[str], None]
) -> None:
    fault = FAULTS[name]()
    began_s = time.monotonic()
    outcome.has_begun = True
    description = fault.make(brokers, rng)
    say(f"{len(outcome.moments) + 1:4}  {time.strftime('%H:%M:%S')}  {description}")
    time.sleep(min(fault.broken_s, outcome.plan.broken_at_most_s))
    fault.heal(brokers)
    healed_s = time.monotonic()
    brokers.wait_in_sync()
    outcome.moments.append(Moment(name, description, began_s, healed_s, time.monotonic()))
    time.sleep(_CALM_S * rng.random())


def _different(brokers: Cluster) -> list[str]:
    folders = [member.data for member in brokers.members.values()]
    return [name for topic in (TOPIC, UNJUDGED) for name in replicas_differ(folders, topic)]


def _make_topics(brokers: Cluster, folder: Path) -> None:
    new = [
        NewTopic(name=name, partitions=PARTITIONS, replication_factor=3, config=_TOPIC_SETTINGS)
        for name in (TOPIC, UNJUDGED, *([GUARDED] if brokers.secured else []))
    ]

    def made() -> bool:
        if not all(member.alive() for member in brokers.members.values()):
            raise TimeoutError
        with contextlib.suppress(Exception), brokers.admin() as admin:
            known = {topic.name for topic in admin.topics.all()}
            if missing := [topic for topic in new if topic.name not in known]:
                admin.topics.create_all(missing)
            if brokers.secured:
                admin.acls.create(_RULES)
            return True
        return False

    try:
        wait_until("the topic is there", made)
    except TimeoutError:
        # Nobody is killed yet, so who is not alive could not start.
        logs = "\n".join(m.log.read_text()[-3000:] for m in brokers.members.values())
        raise TimeoutError(f"no cluster; the brokers say (in {folder}):\n{logs}") from None


def _start_clients(brokers: Cluster, folder: Path, plan: Plan) -> list[Process]:
    writers = (*plan.writers, PATIENT)
    clients = [_ask(brokers, folder, "writer", name, plan.rate) for name in writers]
    # What librdkafka gave up may still be appended, and so may what it then sends again in a new
    # epoch: twice, then. So nothing is judged of these records but that no error was fatal.
    for name, more in ((HASTY, {}), (INTERRUPTED, pauses.environment(folder))):
        clients.append(
            _ask(brokers, folder / name, "writer", name, plan.rate, topic=UNJUDGED, env=more)
        )
    if plan.java:
        clients.append(_ask(brokers, folder, "java_writer", "java", plan.rate))
    clients.append(_ask(brokers, folder, "reader", "reader"))
    clients.append(_ask(brokers, folder, "member", "member"))
    if brokers.secured:
        clients.append(_ask(brokers, folder, "guard", "guard", user=ADMIN))
    return clients


def _at_work(folder: Path, plan: Plan) -> bool:
    # The Java producer's history is written at its end.
    names = [*plan.writers, PATIENT, "reader", "member"]
    return all(any(folder.glob(f"{name}.{TOPIC}*.history")) for name in names)


def _ask(
    brokers: Cluster,
    folder: Path,
    module: str,
    name: str,
    rate: int = 0,
    *,
    topic: str = TOPIC,
    env: Mapping[str, str] | None = None,
    user: str = CLIENT_USER,
) -> Process:
    folder.mkdir(exist_ok=True)
    if brokers.secured is not None:
        env = {**(env or {}), **brokers.secured.environment(user)}
    # Every second of those that are alike.
    alone = int(module == "writer" and (name[-1] in "13579" or name == INTERRUPTED))
    task = Task(name, brokers.bootstrap, topic, PARTITIONS, folder, rate, alone)
    command = [*brokers.hosts.inside(CLIENT), sys.executable, "-m", f"chaos.{module}"]
    return start([*command, *task.words()], folder / f"{name}.log", env=env)


def _require_alive(clients: Sequence[Process]) -> None:
    for client in clients:
        assert client.alive(), f"a client ended of itself:\n{client.log_tail()}"


def _require_good_end(client: Process) -> None:
    """A client that failed has not seen all, and a judgement without it would be worth nothing."""
    code = client.child.wait(_PATIENCE_S)
    assert code == 0, f"a client ended with {code}:\n{client.log_tail()}"
