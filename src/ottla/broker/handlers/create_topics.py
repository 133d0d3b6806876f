"""The handlers that create topics, and add partitions to them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings import TOPIC_SETTINGS, BrokerSettings, topic_value
from ottla.broker.audit.details import created, portions, shown_setting
from ottla.broker.configs.configs import ResourceType
from ottla.broker.quotas.quotas import admit
from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, Guard, each, named
from ottla.broker.requests.portions import Repeated, in_portions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.topics import TopicOutcome, Topics, patience_ms
from ottla.metadata.image import TopicImage
from ottla.metadata.topic_plan import RequestedTopic, check_partition_count
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_TOPICS_QUOTA_ERROR_SINCE = 6
_KRAFT_LOG = "__cluster_metadata"


def _needs(
    check: RequestCheck[CreateTopicsRequest],
) -> Amend[CreateTopicsResponse] | DeniedAnswer:
    """Require CREATE on the cluster or on each topic, and DESCRIBE_CONFIGS to see the settings.

    A request with too many topics is refused before the permissions are looked up.
    """
    check_partition_count(_least_partition_count(check.body))
    others = None if check.sees_cluster(AclOperation.CREATE) else _create_each(check)
    if isinstance(others, DeniedAnswer):
        return others

    def amend(response: CreateTopicsResponse) -> None:
        for one in response.topics:
            if one.error_code or check.sees(
                AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, one.name
            ):
                continue
            one.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            one.num_partitions = one.replication_factor = -1
            one.configs = []
        if others is not None:
            others(response)

    return amend


_create_each: Guard[CreateTopicsRequest, CreateTopicsResponse] = each(
    lambda body: body.topics,
    lambda response: response.topics,
    named(AclOperation.CREATE, AclResource.TOPIC, lambda topic: topic.name),
)


def _topics_changes(
    body: CreateTopicsRequest, response: CreateTopicsResponse
) -> Iterator[AdminChange]:
    """Return audit events for each topic, as created or, after a failure, as requested."""
    if body.validate_only:
        return
    results = {one.name: one for one in response.topics}
    for wanted in body.topics:
        result = results.get(wanted.name)
        made = wanted if result is None or result.num_partitions <= 0 else result
        settings = (
            (bounded(each.name), shown_setting(ResourceType.TOPIC, each.name, each.value))
            for each in wanted.configs
        )
        for portion in portions(settings):
            detail = {
                "partition_count": made.num_partitions,
                "replication_factor": made.replication_factor,
                "settings": portion,
            }
            yield created(wanted.name, detail, result.error_code if result else 0)


@dataclass(slots=True, eq=False, repr=False)
class CreateTopics(Handler):
    """CreateTopics (19), versions 2-7: creates topics by partition counts or replica lists.

    A request may only be validated. A failure of one topic does not affect the others. From version
    5 on the answer has the settings in effect (KIP-525).
    """

    api = Api(
        CreateTopicsRequest,
        CreateTopicsResponse,
        Versions(2, 7),
        needs=_needs,
        changes=_topics_changes,
        # 10,000 topics of one partition with three replicas, the most that one request may create.
        fewer_elements_max=50_000,
        on_error=lambda body, code, message: CreateTopicsResponse(
            topics=[_topics_failed(topic.name, code, message) for topic in body.topics]
        ),
    )

    settings: BrokerSettings
    topics: Topics

    async def handle(
        self, request: RequestContext, body: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        """Create the valid topics."""
        check_partition_count(_least_partition_count(body))
        counts = Counter(topic.name for topic in body.topics)
        results: dict[str, CreatableTopicResult] = {}
        wanted: list[RequestedTopic] = []
        for topic in body.topics:
            try:
                _check(topic, counts)
                new = _new_topic(topic)
                if not body.validate_only:
                    count = _partition_count(topic, self.settings)
                    admit(request, count, strict=request.version >= _TOPICS_QUOTA_ERROR_SINCE)
                wanted.append(new)
            except OttlaError as error:
                results[topic.name] = _topics_failed(topic.name, error.code, error.message)
        for outcome in await self.topics.create(
            wanted, validate_only=body.validate_only, timeout_ms=patience_ms(body.timeout_ms)
        ):
            results[outcome.name] = _result(outcome, self.settings)
        return CreateTopicsResponse(topics=[results[name] for name in counts])


def _check(topic: CreatableTopic, counts: Counter[str]) -> None:
    if counts[topic.name] > 1:
        raise OttlaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if topic.name == _KRAFT_LOG:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {_KRAFT_LOG} is prohibited."
        )


def _least_partition_count(body: CreateTopicsRequest) -> int:
    """Return the least number of requested partitions; a topic without a count has at least one."""
    return sum(max(topic.num_partitions, len(topic.assignments), 1) for topic in body.topics)


def _partition_count(topic: CreatableTopic, settings: BrokerSettings) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return topic.num_partitions if topic.num_partitions > 0 else settings.integer("num.partitions")


def _new_topic(topic: CreatableTopic) -> RequestedTopic:
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {shortened(config.name)}; leave out",
            )
        configs[config.name] = config.value
    assignments = {a.partition_index: a.broker_ids for a in topic.assignments}
    if len(assignments) < len(topic.assignments):
        raise OttlaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Found multiple manual partition assignments."
        )
    return RequestedTopic(
        topic.name, topic.num_partitions, topic.replication_factor, assignments or None, configs
    )


def _result(outcome: TopicOutcome, settings: BrokerSettings) -> CreatableTopicResult:
    topic = outcome.topic
    if topic is None:
        assert outcome.error is not None
        return _topics_failed(outcome.name, outcome.error.code, outcome.error.message)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=_configs(topic, settings),
    )


def _configs(topic: TopicImage, settings: BrokerSettings) -> list[CreatableTopicConfigs]:
    shown: list[CreatableTopicConfigs] = []
    for name, setting in TOPIC_SETTINGS.items():
        if setting.internal:
            continue
        resolved = topic_value(name, topic.configs, settings)
        shown.append(
            CreatableTopicConfigs(
                name=name, value=setting.text_of(resolved.value), config_source=resolved.source
            )
        )
    return shown


def _topics_failed(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])


_PARTITIONS_QUOTA_ERROR_SINCE = 3


def _partitions_changes(
    body: CreatePartitionsRequest, response: CreatePartitionsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic."""
    if body.validate_only:
        return
    codes = {one.name: one.error_code for one in response.results}
    for wanted in body.topics:
        detail = {"partition_count": wanted.count}
        need = topic_need(AclOperation.ALTER, wanted.name)
        yield AdminChange((need,), detail, codes.get(wanted.name, 0))


@dataclass(slots=True, eq=False, repr=False)
class CreatePartitions(Handler):
    """CreatePartitions (37), versions 0-3: adds partitions to topics (KIP-195)."""

    api = Api(
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        Versions(0, 3),
        needs=each(
            lambda body: body.topics,
            lambda response: response.results,
            named(AclOperation.ALTER, AclResource.TOPIC, lambda topic: topic.name),
        ),
        changes=_partitions_changes,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.results,
            lambda topic: topic.name,
            most=64,
            repeated=Repeated.ANSWERED_ONCE,
            keeps_lists=True,
        ),
        on_error=lambda body, code, message: CreatePartitionsResponse(
            results=[_partitions_failed(topic.name, code, message) for topic in body.topics]
        ),
    )

    view: ClusterView
    topics: Topics

    async def handle(
        self, request: RequestContext, body: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        """Add partitions to each topic; an error of one does not affect the others."""
        counts = Counter(topic.name for topic in body.topics)
        results: dict[str, CreatePartitionsTopicResult] = {}
        for topic in body.topics:
            try:
                if counts[topic.name] > 1:
                    raise OttlaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                known = self.view.image.topic(topic.name)
                if known is not None and not body.validate_only:
                    added = max(0, topic.count - len(known.partitions))
                    admit(request, added, strict=request.version >= _PARTITIONS_QUOTA_ERROR_SINCE)
                await self._grow(topic, body)
                results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
            except OttlaError as error:
                results[topic.name] = _partitions_failed(topic.name, error.code, error.message)
        return CreatePartitionsResponse(results=list(results.values()))

    async def _grow(self, topic: CreatePartitionsTopic, body: CreatePartitionsRequest) -> None:
        assignments = None
        if topic.assignments is not None:
            assignments = [assignment.broker_ids for assignment in topic.assignments]
        await self.topics.grow(
            topic.name,
            topic.count,
            assignments,
            validate_only=body.validate_only,
            timeout_ms=patience_ms(body.timeout_ms),
        )


def _partitions_failed(
    name: str, code: ErrorCode, message: str | None
) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
