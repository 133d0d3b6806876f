"""Changes of topics, their partitions, records and settings."""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.broker.audit.details import (
    answers,
    cluster,
    indexes,
    numbers,
    outcomes,
    portions,
    shown,
    topic,
)
from ottla.broker.configs.configs import ResourceType
from ottla.broker.requests.auditing import AdminChange, Need
from ottla.security.audit.line import bounded
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from ottla.wire.messages.compact_log import CompactLogRequest, CompactLogResponse
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

_TOPIC, _GROUP = AclResource.TOPIC, AclResource.GROUP
_ALTER, _ALTER_CONFIGS, _CREATE = (
    AclOperation.ALTER,
    AclOperation.ALTER_CONFIGS,
    AclOperation.CREATE,
)
_CLEAN = 2
_OPERATIONS = {0: "set", 1: "delete", 2: "append", 3: "subtract"}
_ELECTIONS = {0: "preferred", 1: "unclean"}


def create_topics(
    body: CreateTopicsRequest, response: CreateTopicsResponse
) -> Iterator[AdminChange]:
    """Lines of each topic."""
    if body.validate_only:
        return
    results = {one.name: one for one in response.topics}
    for wanted in body.topics:
        result = results.get(wanted.name)
        configs = (
            (bounded(each.name), shown(ResourceType.TOPIC, each.name, each.value))
            for each in wanted.configs
        )
        for portion in portions(configs):
            detail = {**_counts(wanted, result), "settings": portion}
            yield _created(wanted.name, detail, result.error_code if result else 0)


def created_automatically(name: str) -> AdminChange:
    """A topic that a client named in Metadata and that did not exist."""
    return _created(name, {"automatically": True}, 0)


def _created(name: str, detail: Mapping[str, Any], code: int) -> AdminChange:
    needs = (*cluster(_CREATE), *topic(_CREATE, name))
    return AdminChange(needs, detail, code)


def _counts(wanted: CreatableTopic, result: CreatableTopicResult | None) -> Mapping[str, Any]:
    # What was made, and what was asked for where nothing was.
    is_made = result is not None and result.num_partitions > 0
    said = result if result is not None and is_made else wanted
    return {
        "partition_count": said.num_partitions,
        "replication_factor": said.replication_factor,
    }


def delete_topics(
    _body: DeleteTopicsRequest, response: DeleteTopicsResponse
) -> Iterator[AdminChange]:
    """A line for each topic; one that does not exist may have an id alone."""
    for one in response.responses:
        name = one.name or str(one.topic_id)
        yield AdminChange(
            topic(AclOperation.DELETE, name), {"topic_id": str(one.topic_id)}, one.error_code
        )


def create_partitions(
    body: CreatePartitionsRequest, response: CreatePartitionsResponse
) -> Iterator[AdminChange]:
    """A line for each topic."""
    if body.validate_only:
        return
    codes = {one.name: one.error_code for one in response.results}
    for wanted in body.topics:
        detail = {"partition_count": wanted.count}
        yield AdminChange(topic(_ALTER, wanted.name), detail, codes.get(wanted.name, 0))


def delete_records(
    body: DeleteRecordsRequest, response: DeleteRecordsResponse
) -> Iterator[AdminChange]:
    """Lines of each topic; -1 stands for the high watermark."""
    wanted = (
        (one.name, part.partition_index, part.offset)
        for one in body.topics
        for part in one.partitions
    )
    for name, code, offsets in outcomes(wanted, answers(response.topics)):
        yield AdminChange(topic(AclOperation.DELETE, name), {"before_offsets": offsets}, code)


# Of AlterConfigs and of IncrementalAlterConfigs, whose fields have the same names.
def alter_configs(body: Any, response: Any) -> Iterator[AdminChange]:
    """Lines of each resource; values that may be secret are hidden."""
    if body.validate_only:
        return
    codes = {(one.resource_type, one.resource_name): one.error_code for one in response.responses}
    for wanted in body.resources:
        kind, name = wanted.resource_type, wanted.resource_name
        of, code = f"{_kind_name(kind)}:{bounded(name)}", codes.get((kind, name), 0)
        for portion in portions((each.name, _altered(kind, each)) for each in wanted.configs):
            detail = {"of": of, "settings": list(portion.values())}
            yield AdminChange((_config_need(kind, name),), detail, code)


def _config_need(kind: int, name: str) -> Need:
    if kind == ResourceType.TOPIC:
        return Need(_ALTER_CONFIGS, _TOPIC, name)
    if kind == ResourceType.GROUP:
        return Need(_ALTER_CONFIGS, _GROUP, name)
    return cluster(_ALTER_CONFIGS)[0]


def _kind_name(kind: int) -> str:
    try:
        return ResourceType(kind).name.lower()
    except ValueError:
        return str(kind)


def _altered(kind: int, config: Any) -> Mapping[str, Any]:
    # AlterConfigs has no operations: it sets.
    operation = getattr(config, "config_operation", 0)
    return {
        "name": bounded(config.name),
        "operation": _OPERATIONS.get(operation, str(operation)),
        "value": shown(kind, config.name, config.value),
    }


def alter_reassignments(
    body: AlterPartitionReassignmentsRequest, response: AlterPartitionReassignmentsResponse
) -> Iterator[AdminChange]:
    """Lines of each topic; null cancels a reassignment."""
    wanted = (
        (one.name, part.partition_index, part.replicas)
        for one in body.topics
        for part in one.partitions
    )
    answered = answers(response.responses)
    for name, code, replicas in outcomes(wanted, answered, response.error_code):
        yield AdminChange(cluster(_ALTER), {"topic": bounded(name), "replicas": replicas}, code)


def elect_leaders(
    body: ElectLeadersRequest, response: ElectLeadersResponse
) -> Iterator[AdminChange]:
    """Lines of each topic; of all topics, of each that the answer names."""
    election = _ELECTIONS.get(body.election_type, str(body.election_type))
    answered = [
        (one.topic, part.partition_id, part.error_code)
        for one in response.replica_election_results
        for part in one.partition_result
    ]
    if response.error_code and not answered and not body.topic_partitions:
        yield AdminChange(cluster(_ALTER), {"election": election}, response.error_code)
    wanted = [
        (one.topic, index, None) for one in body.topic_partitions or () for index in one.partitions
    ]
    for name, code, parts in outcomes(wanted, answered, response.error_code):
        detail = {"election": election, "topic": bounded(name), "partitions": numbers(parts)}
        yield AdminChange(cluster(_ALTER), detail, code)


def alter_log_dirs(
    body: AlterReplicaLogDirsRequest, response: AlterReplicaLogDirsResponse
) -> Iterator[AdminChange]:
    """Lines of each topic in each folder."""
    answered = {(name, index): code for name, index, code in answers(response.results)}
    for folder in body.dirs:
        wanted = list(indexes(folder.topics, "partitions"))
        own = [(name, index, answered.get((name, index), 0)) for name, index, _ in wanted]
        for name, code, parts in outcomes(wanted, own):
            detail = {
                "folder": bounded(folder.path),
                "topic": bounded(name),
                "partitions": numbers(parts),
            }
            yield AdminChange(cluster(_ALTER), detail, code)


def compact_log(body: CompactLogRequest, response: CompactLogResponse) -> Iterator[AdminChange]:
    """A compaction that was requested; other actions only describe."""
    if body.action == _CLEAN:
        detail = {"partition": body.partition, "action": "compact"}
        yield AdminChange(topic(_ALTER, body.topic), detail, response.error_code)
