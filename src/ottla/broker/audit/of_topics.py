"""Changes of topics, their partitions, records and settings."""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.broker.audit.details import (
    cluster,
    few,
    few_of,
    first_code,
    partitions_code,
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
    """A line for each topic."""
    if body.validate_only:
        return
    results = {one.name: one for one in response.topics}
    for wanted in body.topics:
        result = results.get(wanted.name)
        yield _created(wanted.name, _wanted(wanted, result), result.error_code if result else 0)


def created_automatically(name: str) -> AdminChange:
    """A topic that a client named in Metadata and that did not exist."""
    return _created(name, {"automatically": True}, 0)


def _created(name: str, detail: Mapping[str, Any], code: int) -> AdminChange:
    needs = (*cluster(_CREATE), *topic(_CREATE, name))
    return AdminChange(needs, detail, code)


def _wanted(wanted: CreatableTopic, result: CreatableTopicResult | None) -> Mapping[str, Any]:
    # What was made, and what was asked for where nothing was.
    is_made = result is not None and result.num_partitions > 0
    numbers = result if result is not None and is_made else wanted
    return {
        "partition_count": numbers.num_partitions,
        "replication_factor": numbers.replication_factor,
        "settings": {
            bounded(each.name): shown(ResourceType.TOPIC, each.name, each.value)
            for each in wanted.configs[:50]
        },
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
    """A line for each topic; -1 stands for the high watermark."""
    codes = {one.name: partitions_code(one) for one in response.topics}
    for wanted in body.topics:
        offsets = {part.partition_index: part.offset for part in wanted.partitions}
        detail = {"before_offsets": few(offsets)}
        yield AdminChange(
            topic(AclOperation.DELETE, wanted.name), detail, codes.get(wanted.name, 0)
        )


# Of AlterConfigs and of IncrementalAlterConfigs, whose fields have the same names.
def alter_configs(body: Any, response: Any) -> Iterator[AdminChange]:
    """A line for each resource; values that may be secret are hidden."""
    if body.validate_only:
        return
    codes = {(one.resource_type, one.resource_name): one.error_code for one in response.responses}
    for wanted in body.resources:
        kind, name = wanted.resource_type, wanted.resource_name
        yield AdminChange(
            (_config_need(kind, name),),
            {
                "of": f"{_kind_name(kind)}:{bounded(name)}",
                "settings": [_altered(kind, each) for each in wanted.configs[:50]],
            },
            codes.get((kind, name), 0),
        )


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
    """A line for each topic; null cancels a reassignment."""
    codes = {one.name: partitions_code(one) for one in response.responses}
    for wanted in body.topics:
        replicas = {part.partition_index: part.replicas for part in wanted.partitions}
        detail = {"topic": bounded(wanted.name), "replicas": few(replicas)}
        yield AdminChange(cluster(_ALTER), detail, response.error_code or codes.get(wanted.name, 0))


def elect_leaders(
    body: ElectLeadersRequest, response: ElectLeadersResponse
) -> Iterator[AdminChange]:
    """A line for each topic; of all topics, one for each that the answer names."""
    election = _ELECTIONS.get(body.election_type, str(body.election_type))
    results = response.replica_election_results
    if response.error_code and not results:
        yield AdminChange(cluster(_ALTER), {"election": election}, response.error_code)
    for one in results:
        partitions = few_of([part.partition_id for part in one.partition_result])
        detail = {"election": election, "topic": bounded(one.topic), "partitions": partitions}
        code = first_code(part.error_code for part in one.partition_result)
        yield AdminChange(cluster(_ALTER), detail, response.error_code or code)


def alter_log_dirs(
    body: AlterReplicaLogDirsRequest, response: AlterReplicaLogDirsResponse
) -> Iterator[AdminChange]:
    """A line for each topic in each folder."""
    codes = {one.topic_name: partitions_code(one) for one in response.results}
    for folder in body.dirs:
        for wanted in folder.topics:
            detail = {
                "folder": bounded(folder.path),
                "topic": bounded(wanted.name),
                "partitions": few_of(wanted.partitions),
            }
            yield AdminChange(cluster(_ALTER), detail, codes.get(wanted.name, 0))


def compact_log(body: CompactLogRequest, response: CompactLogResponse) -> Iterator[AdminChange]:
    """A compaction that was requested; other actions only describe."""
    if body.action == _CLEAN:
        detail = {"partition": body.partition, "action": "compact"}
        yield AdminChange(topic(_ALTER, body.topic), detail, response.error_code)
