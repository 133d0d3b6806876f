"""A table follows a topic of three brokers, while leaders and the controller are killed with -9."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rig.clusters import Cluster
from rig.ottla_cluster import ottla_cluster

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import FollowOptions, FollowProgress, run_here

TOPIC = "followed"
Act = Callable[[Cluster], None]


@contextmanager
def produced(bootstrap: str) -> Iterator[dict[tuple[int, int], bytes]]:
    """Records all the time; those that were acknowledged, by partition and offset."""
    stop = threading.Event()
    known: dict[tuple[int, int], bytes] = {}

    def keep(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        known[message.partition(), message.offset()] = message.value()

    def produce() -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        producer = Producer({**settings, "linger.ms": 20})
        number = 0
        while not stop.wait(0.05):
            for _ in range(20):
                number += 1
                producer.produce(TOPIC, b"v%d" % number, on_delivery=keep)
            producer.poll(0)
        assert producer.flush(120) == 0

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield known
    finally:
        stop.set()
        thread.join()


def leader(cluster: Cluster) -> int:
    return cluster.seen_by(cluster.running[0].number, [TOPIC]).topics[TOPIC][0].leader


def controller(cluster: Cluster) -> int:
    return cluster.seen_by(cluster.running[0].number, [TOPIC]).controller


def deaths(cluster: Cluster) -> list[Callable[[], None]]:
    """What happens between commits: each of them dies and comes back."""
    acts: list[Callable[[], None]] = []
    dead: list[int] = []

    def kill(which: Callable[[Cluster], int]) -> Callable[[], None]:
        def act() -> None:
            dead.append(which(cluster))
            cluster.members[dead[-1]].kill()

        return act

    def come_back() -> None:
        cluster.members[dead[-1]].start()

    for which in (leader, controller, leader):
        # Two commits without it, before it is back.
        acts += [
            kill(which),
            lambda: None,
            come_back,
            lambda: cluster.wait_until_in_sync(TOPIC),
        ]
    return acts


def test_brokers_die_and_every_record_is_there_once(tmp_path: Path) -> None:
    """The leader of what is read, the controller, and a leader again: it goes on by itself."""
    with ottla_cluster() as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        config = {"min.insync.replicas": "2"}
        admin.create_topics([NewTopic(TOPIC, 3, 3, config=config)])[TOPIC].result(90)
        cluster.wait_until_in_sync(TOPIC)
        acts = deaths(cluster)
        stop = threading.Event()
        troubles: list[OttlaError] = []

        def on_commit(_progress: FollowProgress) -> None:
            if acts:
                acts.pop(0)()
            else:
                stop.set()

        common: FollowOptions = {
            "bootstrap": cluster.bootstrap,
            "runner": run_here,
            "every": "300ms",
        }
        with produced(cluster.bootstrap) as known:
            ottla.lake.follow(
                TOPIC,
                str(tmp_path),
                watch=ottla.lake.Observer(stop=stop, on_commit=on_commit, on_error=troubles.append),
                **common,
            )
        ottla.lake.follow(TOPIC, str(tmp_path), once=True, **common)
        query = 'select partition, "offset", value from read_parquet(?)'
        rows = duckdb.execute(query, [list(ottla.lake.files(str(tmp_path)))]).fetchall()
        assert len(rows) == len({row[:2] for row in rows})
        assert {(partition, offset): value for partition, offset, value in rows} == known
        proof = ottla.lake.verify(str(tmp_path), bootstrap=cluster.bootstrap)
        assert (proof.problems, proof.proven) == ([], True)
