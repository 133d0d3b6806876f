"""Topics: create, list, describe, add partitions, delete."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode
from ottla.client.admin.calls import Calls
from ottla.client.admin.configs import Configs, plain
from ottla.client.common.arguments import Names, checks_calls, name_list
from ottla.client.common.errors import Needs, check, refused, unknown_topic
from ottla.client.connection.view import ClusterView, TopicDescription, merged
from ottla.wire.api import ApiKey
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; -1 means the broker's default.

    `assignments`, if given, lists the replicas of each partition, the preferred leader first; the
    numbers of partitions and replicas must then be -1.
    """

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)
    assignments: tuple[tuple[int, ...], ...] = ()


@checks_calls()
class Topics:
    """`admin.topics`: create, list, describe and delete topics, and add partitions."""

    def __init__(self, calls: Calls, configs: Configs) -> None:
        self._calls = calls
        self._configs = configs

    async def create_all(
        self, topics: NewTopic | Iterable[NewTopic], *, validate_only: bool = False
    ) -> None:
        """Create all of `topics`.

        Raises the first error; other topics may have been created by then.
        """
        wanted = [topics] if isinstance(topics, NewTopic) else list(topics)
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in wanted],
            timeout_ms=self._calls.cluster.options.request_timeout_ms,
            validate_only=validate_only,
        )

        def read(answer: CreateTopicsResponse) -> None:
            for topic in answer.topics:
                check(topic.error_code, f"create topic {topic.name!r}", topic.error_message)

        await self._calls.ask_controller(request, CreateTopicsResponse, read)

    async def create(
        self,
        name: str,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create one topic and wait until its partitions have leaders."""
        await self.create_all(
            [
                NewTopic(
                    name=name,
                    partitions=partitions,
                    replication_factor=replication_factor,
                    config=config or {},
                )
            ]
        )
        attempt = 0
        while not _is_led(await self._described([name]), name) and attempt < 20:
            await self._calls.cluster.pause(min(attempt, 2))
            attempt += 1

    async def all(self, *, internal: bool = False) -> list[TopicDescription]:
        """Return all topics by name with descriptions; internal topics only with `internal`."""

        async def ask() -> list[TopicDescription]:
            answer = await self._calls.cluster.ask_any(
                MetadataRequest(topics=None), MetadataResponse
            )
            topics = merged(ClusterView(), answer, None).topics
            return [topics[name] for name in sorted(topics)]

        found = await self._calls.retried(ask)
        return [topic for topic in found if internal or not topic.is_internal]

    async def describe(self, name: str) -> TopicDescription:
        """Return partitions, leaders, replicas. Raises UnknownTopic, which names similar topics."""
        return (await self.describe_all([name]))[0]

    async def describe_all(self, names: Names) -> list[TopicDescription]:
        """Describe several topics; the results are in the same order."""
        wanted = name_list(names)
        view = await self._calls.retried(lambda: self._described(wanted))
        for name in wanted:
            code = view.errors.get(name)
            if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or (
                code is None and name not in view.topics
            ):
                raise unknown_topic(name, await self._calls.cluster.topic_names())
            if code is not None:
                needed = [Needs("describe", "topic", name)]
                raise refused(code, f"describe topic {name!r}", None, needed)
        return [view.topics[name] for name in wanted]

    async def _described(self, names: list[str]) -> ClusterView:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        answer = await self._calls.cluster.ask_any(request, MetadataResponse)
        return merged(ClusterView(), answer, names)

    async def create_partitions(
        self,
        name: str,
        total: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Raise the number of partitions to `total`.

        `assignments` are the replicas of each new partition; None lets the broker decide.
        Afterwards keys may map to other partitions.
        """
        wanted = CreatePartitionsTopic(name=name, count=total, assignments=None)
        if assignments is not None:
            wanted.assignments = [
                CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments
            ]
        request = CreatePartitionsRequest(
            topics=[wanted],
            timeout_ms=self._calls.cluster.options.request_timeout_ms,
            validate_only=validate_only,
        )

        def read(answer: CreatePartitionsResponse) -> None:
            for result in answer.results:
                check(result.error_code, f"add partitions to topic {name!r}", result.error_message)

        await self._calls.ask_controller(request, CreatePartitionsResponse, read)

    async def delete(self, names: Names) -> None:
        """Delete topics with all their records. Raises the first error."""
        wanted = name_list(names)

        async def delete() -> None:
            controller = await self._calls.cluster.controller()
            connection = await self._calls.cluster.connection(controller)
            request = DeleteTopicsRequest(timeout_ms=self._calls.cluster.options.request_timeout_ms)
            if connection.version(ApiKey.DELETE_TOPICS) >= 6:
                request.topics = [DeleteTopicState(name=name) for name in wanted]
            else:
                request.topic_names = wanted
            answer = await self._calls.cluster.ask(controller, request, DeleteTopicsResponse)
            for result in answer.responses:
                check(result.error_code, f"delete topic {result.name!r}", result.error_message)

        await self._calls.retried(delete)

    async def alter(self, name: str, config: Mapping[str, str | None]) -> None:
        """Set values of a topic's settings; None resets a setting to its default."""
        await self._configs.alter("topic", name, config)

    # Defined last, because its name hides the type `list`.
    async def list(self, *, internal: bool = False) -> list[str]:
        """Return the names of all topics.

        Internal topics (`__consumer_offsets` …) are included only with `internal`.
        """
        return [topic.name for topic in await self.all(internal=internal)]


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(topic.assignments)
        ],
        configs=[
            CreatableTopicConfig(name=name, value=plain(name, value))
            for name, value in topic.config.items()
        ],
    )


def _is_led(view: ClusterView, name: str) -> bool:
    topic = view.topics.get(name)
    return topic is not None and all(entry.leader >= 0 for entry in topic.partitions)
