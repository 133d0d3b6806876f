"""Kafka's own tools move a replica between two log directories of a broker."""

import json
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig import tools as t
from rig.broker import ottla
from rig.consumer import read

_PATIENCE_S = 120


def test_reassign_partitions_moves_a_replica_between_log_dirs(jvm, tmp_path):
    """kafka-reassign-partitions with log_dirs, --verify until done, and kafka-log-dirs after it."""
    first, second = tmp_path / "one", tmp_path / "two"
    with ottla(settings={"log.dirs": f"{first},{second}"}, folder=tmp_path) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("moved", 1, 1)])["moved"].result(120)
        producer = Producer({"bootstrap.servers": node.bootstrap})
        for number in range(1000):
            producer.produce("moved", value=b"%d" % number)
        assert producer.flush(120) == 0
        source, target = (first, second) if (first / "moved-0").exists() else (second, first)
        move = {"topic": "moved", "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
        path = tmp_path / "move.json"
        path.write_text(json.dumps({"version": 1, "partitions": [move]}))
        where = ("--bootstrap-server", node.bootstrap)
        jvm.run(t.REASSIGN, *where, "--reassignment-json-file", path, "--execute").ok()
        deadline_s = time.monotonic() + _PATIENCE_S
        said = ""
        while "completed successfully" not in said and time.monotonic() < deadline_s:
            verify = (*where, "--reassignment-json-file", path, "--verify")
            said = jvm.run(t.REASSIGN, *verify).ok()
        assert "Reassignment of replica moved-0-1 completed successfully" in said
        assert (target / "moved-0").is_dir()
        assert not (source / "moved-0").exists()
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "log_level": 0})
        try:
            consumer.assign([TopicPartition("moved", 0, OFFSET_BEGINNING)])
            found = read(consumer, 1000)
            assert [message.value() for message in found] == [b"%d" % n for n in range(1000)]
        finally:
            consumer.close()
