"""Two loads into one table at once: `python -m tests.system.lake.by_hand_races --rounds 100`.

In each round both processes plan the same new records and write their files; they meet before
either commits. One has to win, and the other to say that it lost. In the end the table is read by
delta-rs, pyiceberg or DuckDB: each record has to be there once.
"""

import argparse
import multiprocessing
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla as ottla_process
from rig.nodes import Node

import ottla.lake
from ottla.lake.tables.table import CommitConflict
from tests.unit.lake.logged import readers

_RECORDS = 20


def compete(
    bootstrap: str, topic: str, target: str, rounds: int, together: Barrier, results: Any
) -> None:
    """Load round after round, and meet the other before each commit. Puts what came of each."""

    def meet(step: str) -> None:
        if step == "files written":
            together.wait()

    for _ in range(rounds):
        together.wait()  # The records of the round are there.
        try:
            done = ottla.lake.load(
                topic,
                target,
                bootstrap=bootstrap,
                runner=ottla.lake.run_here,
                watch=ottla.lake.Observer(on_step=meet),
            )
            results.put("won" if done.rows == _RECORDS else f"loaded {done.rows} rows")
        except CommitConflict:
            results.put("lost")
        except Exception as error:  # noqa: BLE001  # It is counted, and fails the command.
            results.put(f"failed: {error}")
        together.wait()


def play(node: Node, form: str, rounds: int, folder: Path) -> Counter[tuple[str, ...]]:
    """How often which pair of outcomes came."""
    topic, target = f"race-{form}", folder / form
    AdminClient({"bootstrap.servers": node.bootstrap}).create_topics([NewTopic(topic, 1)])
    time.sleep(0.5)
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0})
    # The first load makes the table.
    _produce(producer, topic)
    ottla.lake.load(
        topic, str(target), bootstrap=node.bootstrap, runner=ottla.lake.run_here, format=form
    )
    context = multiprocessing.get_context("spawn")
    together, results = context.Barrier(3), context.Queue()
    given = (node.bootstrap, topic, str(target), rounds, together, results)
    runners = [context.Process(target=compete, args=given) for _ in range(2)]
    for one in runners:
        one.start()
    outcomes: Counter[tuple[str, ...]] = Counter()
    for _ in range(rounds):
        _produce(producer, topic)
        together.wait(120)
        _let_them_meet(together)
        pair = tuple(sorted(results.get(timeout=120) for _ in range(2)))
        outcomes[pair] += 1
        together.wait(120)
    for one in runners:
        one.join()
    return outcomes


def _let_them_meet(together: Barrier) -> None:
    """The third at the barrier before the commit."""
    try:
        together.wait(120)
    except threading.BrokenBarrierError:
        sys.exit("one of the two never came to its commit")


def _produce(producer: Producer, topic: str) -> None:
    for number in range(_RECORDS):
        producer.produce(topic, str(number).encode())
    producer.flush()


def main() -> int:
    """Race in each format; 1 where a round had no winner, or two, or a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    folder = Path(tempfile.mkdtemp(prefix="lake-races-"))
    is_bad = False
    with ottla_process() as node:
        for form in ("parquet", "delta", "iceberg"):
            outcomes = play(node, form, rounds, folder)
            expected = readers.expected(1, _RECORDS * (rounds + 1))
            target = folder / form
            found = readers.rows_by_duckdb(target)
            if form != "parquet" and readers.rows_by_format(target, form) != expected:
                found = []
            proof = ottla.lake.verify(str(target), bootstrap=node.bootstrap)
            is_right = set(outcomes) == {("lost", "won")} and found == expected and proof.proven
            is_bad = is_bad or not is_right
            shown = ", ".join(f"{' and '.join(pair)}: {n}" for pair, n in outcomes.items())
            sys.stdout.write(f"{form:8} {shown}; {'each row once' if is_right else 'WRONG'}\n")
            sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
