"""Reads a ClusterImage from the store."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.metadata import nodes, paths
from ottla.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.metadata.nodes import TopicNode

# Up to this number, topics are read one by one; for more, all topics are read at once.
_FEW = 16


class _Node(Protocol):
    """The loader's view of a node."""

    @property
    def data(self) -> bytes: ...

    @property
    def version(self) -> int: ...


class NodeSource(Protocol):
    """The loader's view of the store."""

    async def subtree(self, path: str) -> Mapping[str, _Node]:
        """Return the node at `path` and all nodes below it, by path; empty if there is no node."""
        ...


class Loaded(NamedTuple):
    """The image, and the topics whose deletion has begun but not finished."""

    image: ClusterImage
    deleting: tuple[TopicImage, ...]


async def load_image(source: NodeSource, cluster_id: str) -> Loaded:
    """Read brokers, topics and settings. Raises OttlaError naming a damaged node."""
    brokers_tree = await source.subtree(paths.BROKERS)
    config_tree = await source.subtree("/config")
    marked = await source.subtree(paths.DELETE_TOPICS)
    going = {path.removeprefix(f"{paths.DELETE_TOPICS}/") for path in marked}
    topic_configs = _configs(config_tree, paths.CONFIG_TOPICS)
    topics = [
        topic_of(brokers_tree, name, topic_configs.get(name, {}))
        for name in _children(brokers_tree, paths.TOPICS)
    ]
    living = {topic.name: topic for topic in topics if topic.name not in going}
    features = config_tree.get(paths.CONFIG_FEATURES)
    image = ClusterImage(
        cluster_id,
        brokers={broker.id: broker for broker in _brokers(brokers_tree)},
        topics=living,
        topics_by_id={topic.id: topic for topic in living.values()},
        broker_configs=_configs(config_tree, paths.CONFIG_BROKERS),
        group_configs=_configs_by_name(config_tree, paths.CONFIG_GROUPS),
        client_metrics=_configs_by_name(config_tree, paths.CONFIG_CLIENT_METRICS),
        features=nodes.decode_features(
            paths.CONFIG_FEATURES, b"" if features is None else features.data
        ),
        features_epoch=nodes.features_epoch(None if features is None else features.version),
    )
    return Loaded(image, tuple(topic for topic in topics if topic.name in going))


async def load_topics(source: NodeSource, names: Sequence[str]) -> dict[str, TopicImage]:
    """Read the existing topics of `names`, also those marked for deletion. Raises OttlaError."""
    if len(names) > _FEW:
        tree = await source.subtree(paths.TOPICS)
        config_tree = await source.subtree(paths.CONFIG_TOPICS)
        configs = _configs(config_tree, paths.CONFIG_TOPICS)
        return {
            name: topic_of(tree, name, configs.get(name, {}))
            for name in names
            if paths.topic(name) in tree
        }
    found: dict[str, TopicImage] = {}
    for name in names:
        path = paths.topic_config(name)
        tree = await source.subtree(paths.topic(name))
        node = (await source.subtree(path)).get(path)
        if paths.topic(name) in tree:
            held = {} if node is None else nodes.decode_configs(path, node.data)
            found[name] = topic_of(tree, name, held)
    return found


def _brokers(tree: Mapping[str, _Node]) -> list[BrokerImage]:
    return [
        nodes.decode_broker(
            f"{paths.BROKER_IDS}/{name}",
            tree[f"{paths.BROKER_IDS}/{name}"].data,
            _epoch_of(tree, name),
        )
        for name in _children(tree, paths.BROKER_IDS)
    ]


def _epoch_of(tree: Mapping[str, _Node], broker: str) -> int:
    """The broker epoch: the version, counted from 1, of a node that each registration sets."""
    node = tree.get(f"{paths.BROKER_EPOCHS}/{broker}")
    return 0 if node is None else node.version + 1


def topic_of(tree: Mapping[str, _Node], name: str, configs: Mapping[str, str]) -> TopicImage:
    """Decode a topic from a subtree with its node and its partition states. Raises OttlaError."""
    node = tree[paths.topic(name)]
    held = nodes.decode_topic(paths.topic(name), node.data)
    partitions = tuple(_partition(tree, name, index, held) for index in range(len(held.replicas)))
    return TopicImage(name, held.id, partitions, configs, node.version)


def _partition(
    tree: Mapping[str, _Node], name: str, index: int, topic: TopicNode
) -> PartitionImage:
    path = paths.partition_state(name, index)
    node = tree.get(path)
    if node is None:
        raise OttlaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"the store lacks {path}, which is made together with its topic",
        )
    state = nodes.decode_partition(path, node.data, topic.replicas[index], node.version)
    adding, removing = topic.adding.get(index, ()), topic.removing.get(index, ())
    return state._replace(adding=adding, removing=removing) if adding or removing else state


def _configs_by_name(tree: Mapping[str, _Node], parent: str) -> dict[str, dict[str, str]]:
    return {paths.name_of(node): configs for node, configs in _configs(tree, parent).items()}


def _configs(tree: Mapping[str, _Node], parent: str) -> dict[str, dict[str, str]]:
    return {
        name: nodes.decode_configs(f"{parent}/{name}", tree[f"{parent}/{name}"].data)
        for name in _children(tree, parent)
    }


def _children(tree: Mapping[str, _Node], parent: str) -> list[str]:
    prefix = f"{parent}/"
    return [
        path[len(prefix) :]
        for path in tree
        if path.startswith(prefix) and "/" not in path[len(prefix) :]
    ]
