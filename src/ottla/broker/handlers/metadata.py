"""Metadata (3), versions 0-13: lists brokers, topics, partitions and their leaders.

Brokers that left a moment ago are still listed for clients that would otherwise fail (see
`departed`). An unknown topic is created if the request and `auto.create.topics.enable` allow it.
Kafka then answers UNKNOWN_TOPIC_OR_PARTITION, and the client must ask again. Here creation takes
only a few milliseconds, so the answer waits for it and is complete.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, BrokerId, TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.audit.details import created
from ottla.broker.cluster.addresses import Departed, broker_addresses
from ottla.broker.cluster.peers import Peers
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.access import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend
from ottla.broker.requests.portions import in_portions, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import log_not_created
from ottla.broker.topics.topics import Topics
from ottla.metadata.image import (
    INTERNAL_TOPICS,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from ottla.metadata.topic_names import check_topic_name
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

# A client whose leader has died asks within the same millisecond, perhaps before this broker's own
# connection to that leader has ended. If the answer named the dead broker, the client might wait
# more than a second before it asks again. Therefore the answer is delayed by this time.
_LOOK_S = 0.005
# Version 10 added the id fields, but topics may be requested by id only from version 12 on.
_IDS_FROM = 12
# The answer for a topic of so many partitions is kept, because many clients ask at a fail-over.
_MANY = 500
_NONE, _LEADER_NOT_AVAILABLE = int(ErrorCode.NONE), int(ErrorCode.LEADER_NOT_AVAILABLE)


def _needs(check: RequestCheck[MetadataRequest]) -> Amend[MetadataResponse]:
    """Require DESCRIBE on each topic; to create a missing one, CREATE on it or on the cluster.

    The answer to a request for all topics leaves out the topics that the client may not DESCRIBE.
    If the client names such a topic, the answer does not show whether the topic exists.
    """
    body = check.body
    is_all = body.topics is None or (check.version == 0 and not body.topics)
    refused: list[MetadataResponseTopic] = []
    if not is_all:
        allowed = []
        for asked in body.topics or ():
            denied = _denied(check, asked)
            if denied is None:
                allowed.append(asked)
            else:
                refused.append(denied)
        body.topics = allowed
    # In version 0, an empty list means all topics.
    nothing_left = not is_all and not body.topics

    def amend(response: MetadataResponse) -> None:
        if is_all:
            response.topics = [
                one
                for one in response.topics
                if check.sees(AclOperation.DESCRIBE, AclResource.TOPIC, one.name or "")
            ]
        elif nothing_left:
            response.topics = []
        response.topics += refused
        for one in response.topics:
            if one.topic_authorized_operations != NOT_ASKED and one.name is not None:
                one.topic_authorized_operations = check.topic_operations(one.name)
        if response.cluster_authorized_operations != NOT_ASKED:
            response.cluster_authorized_operations = check.cluster_operations()

    return amend


def _denied(
    check: RequestCheck[MetadataRequest], asked: MetadataRequestTopic
) -> MetadataResponseTopic | None:
    by_id = asked.name is None or asked.topic_id != NO_TOPIC_ID
    if by_id and check.version < _IDS_FROM:
        # The handler refuses this request.
        return None
    name = check.topic_name(asked.topic_id) if by_id else asked.name
    if name is None:
        return None
    if check.code(AclOperation.DESCRIBE, AclResource.TOPIC, name) is not None:
        return MetadataResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            name=None if by_id else name,
            topic_id=asked.topic_id,
        )
    creates = (
        check.body.allow_auto_topic_creation
        and not by_id
        and check.settings.flag("auto.create.topics.enable")
        and check.image.topic(name) is None
    )
    if not creates or check.sees_cluster(AclOperation.CREATE):
        return None
    if check.code(AclOperation.CREATE, AclResource.TOPIC, name) is None:
        return None
    return MetadataResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
    )


@dataclass(slots=True, eq=False, repr=False)
class Metadata(Handler):
    """Serves Metadata."""

    api = Api(
        MetadataRequest,
        MetadataResponse,
        Versions(0, 13),
        needs=_needs,
        portions=in_portions(lambda body: body.topics, lambda response: response.topics),
        once=once(lambda body: body.topics, lambda topic: (topic.topic_id, topic.name)),
    )

    view: ClusterView
    runtime: Runtime
    partitions: Partitions
    settings: BrokerSettings
    topics: Topics
    peers: Peers
    departed: Departed
    # The last answer for a topic of many partitions, and what it was made from.
    _made_from: tuple[object, ...] = ()
    _made: list[MetadataResponsePartition] = field(default_factory=list)

    def handle(self, request: RequestContext, body: MetadataRequest) -> MetadataResponse | None:
        """Answer from the cluster image, at once or after creating missing topics."""
        _check_null_names(body, request.version)
        if body.allow_auto_topic_creation and self.settings.flag("auto.create.topics.enable"):
            missing = _missing(self.view.image, body)
            if missing:

                def reply(failed: Mapping[str, OttlaError]) -> None:
                    for name, error in failed.items():
                        log_not_created(request, name, error)
                    _report_created(request, missing, failed)
                    request.reply(self._answer(request, body, failed))

                self.topics.auto_create_then(missing, reply)
                return None
        if self._names_others(body):
            self.runtime.loop.call_later(
                _LOOK_S, lambda: request.reply(self._answer(request, body, {}))
            )
            return None
        return self._answer(request, body, {})

    def _names_others(self, body: MetadataRequest) -> bool:
        """Return whether the answer will name leaders on other brokers."""
        image = self.view.image
        if len(image.brokers) < 2 or body.topics is None:
            return False
        topics = (_find(image, asked) for asked in body.topics)
        return any(
            partition.leader != self.view.broker_id and partition.leader in image.brokers
            for topic in topics
            if topic is not None
            for partition in topic.partitions
        )

    def _answer(
        self,
        request: RequestContext,
        body: MetadataRequest,
        failed: Mapping[str, OttlaError],
    ) -> MetadataResponse:
        image = self.view.image
        answering = self.peers.answering()
        operations = TOPIC_OPERATIONS if body.include_topic_authorized_operations else NOT_ASKED
        if body.topics is None or (request.version == 0 and not body.topics):
            topics = [self._known(topic, answering, operations) for topic in image.topics.values()]
        else:
            topics = [
                self._asked(topic, answering, failed, operations)
                for topic in _once(image, body.topics)
            ]
        if request.version == 0:
            _leave_out_the_dead(topics, image.brokers)
        software = request.connection.software
        departed = self.departed.named_to(software, self.runtime.clock.monotonic_ms())
        wants_cluster = body.include_cluster_authorized_operations
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=b.id, host=b.host, port=b.port, rack=b.rack)
                for b in broker_addresses(self.view.image, request, departed)
            ],
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            topics=topics,
            cluster_authorized_operations=CLUSTER_OPERATIONS if wants_cluster else NOT_ASKED,
        )

    def _asked(
        self,
        asked: MetadataRequestTopic,
        answering: AbstractSet[BrokerId],
        failed: Mapping[str, OttlaError],
        operations: int,
    ) -> MetadataResponseTopic:
        topic = _find(self.view.image, asked)
        if topic is not None:
            return self._known(topic, answering, operations)
        if asked.name is None or asked.topic_id != NO_TOPIC_ID:
            code, name, operations = ErrorCode.UNKNOWN_TOPIC_ID, None, NOT_ASKED
        else:
            error, name = failed.get(asked.name), asked.name
            code = _why_missing(name) if error is None else error.code
        return MetadataResponseTopic(
            error_code=code,
            name=name,
            topic_id=asked.topic_id,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=operations,
        )

    def _known(
        self, topic: TopicImage, answering: AbstractSet[BrokerId], operations: int
    ) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.is_internal,
            partitions=self._partitions(topic, answering),
            topic_authorized_operations=operations,
        )

    # Hot: once for each partition of a topic, of which clients may have thousands.
    def _partitions(
        self, topic: TopicImage, answering: AbstractSet[BrokerId]
    ) -> list[MetadataResponsePartition]:
        name, found, own_id = topic.name, self.partitions.find, self.view.broker_id
        superseded = {
            index
            for index, shown in enumerate(topic.partitions)
            if (replica := found(name, index)) is not None
            and _is_superseded(shown, replica, own_id)
        }
        # Images are replaced, not changed. The first one is kept, so that no other has its id.
        brokers = set(self.view.image.brokers)
        made_from = (topic.partitions, id(topic.partitions), set(answering), brokers, superseded)
        if made_from[1:] == self._made_from[1:]:
            return self._made
        made = self._make(topic, answering, superseded)
        if len(made) >= _MANY:
            self._made_from, self._made = made_from, made
        return made

    def _make(
        self, topic: TopicImage, answering: AbstractSet[BrokerId], superseded: AbstractSet[int]
    ) -> list[MetadataResponsePartition]:
        brokers = self.view.image.brokers
        # Shared, because many partitions have the same replicas.
        offline_of: dict[tuple[BrokerId, ...], list[int]] = {}
        lists: dict[tuple[BrokerId, ...], list[int]] = {}
        answers = []
        for index, shown in enumerate(topic.partitions):
            leader, replicas, isr = shown.leader, shown.replicas, shown.isr
            offline = offline_of.get(replicas)
            if offline is None:
                offline = offline_of[replicas] = [b for b in replicas if b not in brokers]
                lists[replicas] = list(replicas)
            if isr not in lists:
                lists[isr] = list(isr)
            has_leader = leader in answering and index not in superseded
            answers.append(
                MetadataResponsePartition(
                    error_code=_NONE if has_leader else _LEADER_NOT_AVAILABLE,
                    partition_index=index,
                    leader_id=leader if has_leader else -1,
                    leader_epoch=shown.leader_epoch,
                    replica_nodes=lists[replicas],
                    isr_nodes=lists[isr],
                    offline_replicas=offline,
                )
            )
        return answers

    @staticmethod
    def on_error(
        body: MetadataRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> MetadataResponse:
        """Return the error for every requested topic; from version 13 on for the whole answer."""
        topics = [
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in body.topics or ()
        ]
        return MetadataResponse(topics=topics, error_code=code)


def _find(image: ClusterImage, asked: MetadataRequestTopic) -> TopicImage | None:
    """Find a requested topic by id, or else by name; Java sends an empty name with an id."""
    if asked.name is None or asked.topic_id != NO_TOPIC_ID:
        return image.topic_by_id(TopicId(asked.topic_id))
    return image.topic(asked.name)


def _check_null_names(body: MetadataRequest, version: int) -> None:
    """Raise OttlaError if this version must not request topics by id, as in Kafka."""
    if version < _IDS_FROM and body.topics is not None:
        for topic in body.topics:
            if topic.name is None or topic.topic_id != NO_TOPIC_ID:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Topic IDs are not supported in requests for version {version}",
                )


def _report_created(
    request: RequestContext, names: Iterable[str], failed: Mapping[str, OttlaError]
) -> None:
    if request.audit is None:
        return
    for name in names:
        if name not in failed:
            request.audit.changed(request, created(name, {"automatically": True}))


def _missing(image: ClusterImage, body: MetadataRequest) -> list[str]:
    """Return the missing topics that may be created; topics requested by id never are."""
    missing: list[str] = []
    for topic in body.topics or ():
        if topic.name is None or topic.topic_id != NO_TOPIC_ID or topic.name in image.topics:
            continue
        try:
            check_topic_name(topic.name)
        except OttlaError:
            continue
        missing.append(topic.name)
    return list(dict.fromkeys(missing))


def _leave_out_the_dead(
    topics: list[MetadataResponseTopic], alive: Mapping[BrokerId, BrokerImage]
) -> None:
    """Remove dead brokers from the replicas in answers of version 0, as Kafka does."""
    for topic in topics:
        # Copies, since the answer may be given again.
        topic.partitions = [copy(partition) for partition in topic.partitions]
        for partition in topic.partitions:
            before = len(partition.replica_nodes) + len(partition.isr_nodes)
            partition.replica_nodes = [b for b in partition.replica_nodes if b in alive]
            partition.isr_nodes = [b for b in partition.isr_nodes if b in alive]
            left = len(partition.replica_nodes) + len(partition.isr_nodes)
            if left < before and partition.error_code == ErrorCode.NONE:
                partition.error_code = ErrorCode.REPLICA_NOT_AVAILABLE


def _once(image: ClusterImage, topics: list[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Return each requested topic once, even if it is requested several times, by name or id."""
    if len(topics) < 2:
        return topics
    once: dict[object, MetadataRequestTopic] = {}
    for asked in topics:
        found = _find(image, asked)
        key = (asked.name, asked.topic_id) if found is None else found.id
        once.setdefault(key, asked)
    return list(once.values())


def _why_missing(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except OttlaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _is_superseded(shown: PartitionImage, replica: Partition, own_id: BrokerId) -> bool:
    """Return whether the local replica knows that the leader in the image has been replaced.

    LeaderAndIsr arrives shortly before UpdateMetadata. The new leader may not yet know that it
    leads, so the answer names no leader. If the answer sent the client back to the broker that
    refused it, the client would wait a second or more before it asks again.
    """
    if replica.failure is not None:
        return False
    if replica.leader_epoch > shown.leader_epoch:
        return True
    return shown.leader == own_id and replica.leader is None
