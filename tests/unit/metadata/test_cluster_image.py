"""The image is a value: changing it makes another, and the two views of topics agree."""

import asyncio
import json
from uuid import UUID

import pytest

from ottla.base.errors import OttlaError
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata import nodes, paths
from ottla.metadata.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from ottla.metadata.loader import load_image
from ottla.metadata.nodes import TopicNode, topic_id_of, topic_id_text, topic_id_value
from tests.unit.coordination.writes import create

ONE, TWO = UUID(int=1), UUID(int=2)
PARTITION = PartitionImage(3, 5, (3, 4), (3,))


def test_adding_a_topic_leaves_the_old_image_as_it_was():
    """A request that began with it sees it to its end."""
    before = ClusterImage("c")
    after = before.with_topic(TopicImage("t", ONE, (PARTITION,)))
    assert before.topic("t") is None
    assert after.topic("t") is after.topic_by_id(ONE)


def test_a_topic_made_anew_is_found_by_its_new_id_only():
    """Same name, another topic (KIP-516)."""
    image = ClusterImage("c").with_topic(TopicImage("t", ONE, ()))
    image = image.with_topic(TopicImage("t", TWO, ()))
    assert image.topic_by_id(ONE) is None
    assert image.topic_by_id(TWO) is image.topic("t")


def test_a_partition_is_found_by_topic_and_number():
    """None for what is not there."""
    image = ClusterImage("c").with_topic(TopicImage("t", ONE, (PARTITION,)))
    assert image.partition("t", 0) is PARTITION
    assert image.partition("t", 1) is None
    assert image.partition("t", -1) is None
    assert image.partition("u", 0) is None


def test_a_topic_id_is_text_as_kafka_writes_it():
    """URL-safe base64 without padding, 22 characters."""
    topic_id = UUID("3f1fe2f2-6d9c-4b59-9d0e-1bd6b1b3b0a1")
    assert topic_id_text(topic_id) == "Px_i8m2cS1mdDhvWsbOwoQ"
    assert topic_id_value("Px_i8m2cS1mdDhvWsbOwoQ") == topic_id
    with pytest.raises(ValueError, match="22"):
        topic_id_value("short")


def test_a_new_topic_id_is_never_reserved():
    """Kafka keeps the ids 0 and 1 for itself; random bytes cannot give them."""
    assert topic_id_of(bytes(16)) == UUID("00000000-0000-4000-8000-000000000000")


def test_nodes_hold_kafkas_json():
    """The forms of the design papers' registry, as Kafka stored them in ZooKeeper."""
    topic = nodes.encode_topic(TopicNode(ONE, ((1, 2), (2, 1))))
    assert topic == (
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":{"0":[1,2],"1":[2,1]},'
        b'"adding_replicas":{},"removing_replicas":{}}'
    )
    state = nodes.encode_partition(PARTITION, controller_epoch=9)
    assert state == (
        b'{"version":1,"controller_epoch":9,"leader":3,"leader_epoch":5,"isr":[3],'
        b'"elr":[],"last_known_elr":[],"nonce":0,"leader_broker_epoch":0}'
    )
    assert nodes.encode_configs({"a": "1"}) == b'{"version":1,"config":{"a":"1"}}'


def test_what_is_written_is_read_again():
    """Each node's data, and where the store adds something, that too."""
    node = TopicNode(ONE, ((1, 2), (2, 1)))
    assert nodes.decode_topic("/t", nodes.encode_topic(node)) == node
    data = nodes.encode_partition(PARTITION, 0)
    assert nodes.decode_partition("/s", data, (3, 4), 8) == PartitionImage(3, 5, (3, 4), (3,), 8)
    assert nodes.decode_configs("/c", nodes.encode_configs({"a": "1"})) == {"a": "1"}
    broker = BrokerImage(3, {"IN": Endpoint("h", 1), "OUT": Endpoint("::1", 2, "SSL")}, "rack")
    assert nodes.decode_broker("/brokers/ids/3", nodes.encode_broker(broker, 7)) == broker


def test_a_brokers_node_names_the_security_protocol_of_each_listener():
    """Kafka's tools of ZooKeeper choose by them how to connect; `host` is one without security."""
    broker = BrokerImage(
        3, {"IN": Endpoint("in", 1, "SASL_SSL"), "OUT": Endpoint("out", 2)}, epoch=0
    )
    held = json.loads(nodes.encode_broker(broker, 7))
    assert held["listener_security_protocol_map"] == {"IN": "SASL_SSL", "OUT": "PLAINTEXT"}
    assert held["endpoints"] == ["IN://in:1", "OUT://out:2"]
    assert (held["host"], held["port"]) == ("out", 2)
    alone = json.loads(nodes.encode_broker(BrokerImage(3, {"IN": Endpoint("in", 1, "SSL")}), 7))
    assert (alone["host"], alone["port"]) == (None, -1)
    del held["listener_security_protocol_map"]
    old = nodes.decode_broker("/brokers/ids/3", json.dumps(held).encode())
    assert old.endpoints["IN"].protocol == "PLAINTEXT"
    held["listener_security_protocol_map"] = {"IN": "FAX"}
    with pytest.raises(OttlaError, match="/brokers/ids/3"):
        nodes.decode_broker("/brokers/ids/3", json.dumps(held).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"partitions":{"1":[1]}}', b"\xff"])
def test_a_damaged_node_is_refused_by_its_path(data):
    """The message says which, and what to do."""
    with pytest.raises(OttlaError) as raised:
        nodes.decode_topic("/brokers/topics/t", data)
    assert "/brokers/topics/t" in raised.value.message


def test_a_group_with_a_slash_has_one_node():
    """Group ids are free text."""
    for group in ("a/b", "a%2Fb", "%", "plain"):
        path = paths.group_config(group)
        assert path.count("/") == 3
        assert paths.name_of(path.rpartition("/")[2]) == group


def test_an_image_is_read_from_the_store():
    """Brokers, topics, settings; a topic that is being deleted is told apart."""

    async def main():
        store = MemoryStore()
        for path in paths.FOUNDATIONS:
            await store.ensure(path)
        broker = BrokerImage(3, {"PLAINTEXT": Endpoint("h", 1)})
        await create(store, paths.broker(3), nodes.encode_broker(broker, 0))
        for name, topic_id in (("t", ONE), ("going", TWO)):
            node = TopicNode(topic_id, ((3, 4),))
            await create(store, paths.topic(name), nodes.encode_topic(node))
            await store.ensure(paths.partition(name, 0))
            state = nodes.encode_partition(PARTITION, 0)
            await create(store, paths.partition_state(name, 0), state)
        await create(store, paths.topic_deletion("going"))
        await create(store, paths.topic_config("t"), nodes.encode_configs({"a": "1"}))
        await create(store, paths.broker_config("3"), nodes.encode_configs({"b": "2"}))
        await create(store, paths.group_config("g/h"), nodes.encode_configs({"c": "3"}))
        loaded = await load_image(store, "cluster")
        topic = TopicImage("t", ONE, (PARTITION,), {"a": "1"})
        assert loaded.image == ClusterImage(
            "cluster",
            brokers={3: broker},
            topics={"t": topic},
            topics_by_id={ONE: topic},
            broker_configs={"3": {"b": "2"}},
            group_configs={"g/h": {"c": "3"}},
        )
        assert [going.name for going in loaded.deleting] == ["going"]

    asyncio.run(main())


def test_a_partition_without_state_is_damage():
    """A topic and its partitions are written together."""

    async def main():
        store = MemoryStore()
        await store.ensure(paths.TOPICS)
        await create(store, paths.topic("t"), nodes.encode_topic(TopicNode(ONE, ((3,),))))
        with pytest.raises(OttlaError) as raised:
            await load_image(store, "cluster")
        assert paths.partition_state("t", 0) in raised.value.message

    asyncio.run(main())
