"""Runs the cells of the matrix against a broker, Ottla's or Kafka's.

A cell is a request in one version, under one set of ACLs. All connections are ANONYMOUS: ACLs
distinguish the client under test, the administrator and the broker itself by their addresses on
loopback. Every resource is protected from the start, by ACLs for the administrator.

By hand, all cells against both: `python -m tests.integration.protocol.acls.matrix`.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from rig.broker import ottla
from rig.kafka import kafka
from rig.wire_client import WireClient

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import (
    CLUSTER_NAME,
    AclOperation,
    AclResource,
    PatternType,
    Permission,
)
from ottla.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.transactions import InitProducerIdRequest
from ottla.wire.notation import Message, has_field
from tests.integration.protocol.acls.cases import CASES, GROUP, TOPIC, TXN, Case, Need

BROKER, ADMIN, CLIENT, OTHER = "127.0.0.1", "127.0.0.2", "127.0.0.5", "127.0.0.9"
WHO = "User:ANONYMOUS"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until the first ACLs are there.
    "allow.everyone.if.no.acl.found": "true",
    "transaction.state.log.num.partitions": "2",
    "auto.create.topics.enable": "false",
}
VARIANTS = ("none", "allow", "all", "deny", "prefix", "wildcard", "host", "user")
ALLOWING = frozenset(("allow", "all", "prefix", "wildcard"))
# The errors of denied topics, groups, clusters and transactional ids.
_DENIALS = {29, 30, 31, 53}
_PATIENCE_S = 60.0
_PAUSE_S = 0.002


class Cell(NamedTuple):
    """The needs of `case` are allowed, but for that at `index`, to which `variant` applies."""

    case: Case
    index: int
    variant: str

    @property
    def need(self) -> Need:
        return self.case.needs[self.index]

    def __str__(self) -> str:
        need = self.need
        return f"{self.case.name}: {need.operation.name} {need.kind.name} {self.variant}"


class Outcome(NamedTuple):
    """What a response says about permissions, and nothing else."""

    codes: frozenset[int]
    names: frozenset[str]
    digest: Any


def cells() -> Iterator[Cell]:
    for case in CASES:
        for index, need in enumerate(case.needs):
            for variant in VARIANTS:
                if variant == "wildcard" and need.kind is AclResource.CLUSTER:
                    continue
                yield Cell(case, index, variant)


def rules(cell: Cell) -> frozenset[Acl]:
    """The ACLs for the client under test."""
    found = {_allow(need) for index, need in enumerate(cell.case.needs) if index != cell.index}
    need = cell.need
    plain = _allow(need)
    deny = plain._replace(permission=Permission.DENY)
    # The cluster has one name only, whatever the pattern.
    start = need.name if need.kind is AclResource.CLUSTER else need.name[:6]
    prefixed = ResourcePattern(need.kind, start, PatternType.PREFIXED)
    found |= {
        "none": set(),
        "allow": {plain},
        "all": {plain._replace(operation=AclOperation.ALL)},
        "deny": {plain, deny},
        "prefix": {plain._replace(pattern=prefixed)},
        "wildcard": {plain._replace(pattern=ResourcePattern(need.kind, "*"))},
        "host": {plain._replace(host=OTHER)},
        "user": {plain._replace(principal="User:bob")},
    }[cell.variant]
    return frozenset(found)


def _allow(need: Need) -> Acl:
    return Acl(ResourcePattern(need.kind, need.name), WHO, CLIENT, need.operation, Permission.ALLOW)


def expected_error(cell: Cell) -> int | None:
    """The error of the denied need; None where all is allowed."""
    if cell.variant in ALLOWING:
        return None
    if cell.variant == "deny" and cell.case.denied_code is not None:
        return int(cell.case.denied_code)
    return int(cell.case.refused_code or cell.need.code)


class Subject:
    """A broker under test."""

    def __init__(self, port: int) -> None:
        self._admin = WireClient(port, from_host=ADMIN)
        self._client = WireClient(port, from_host=CLIENT)
        self._rules: frozenset[Acl] = frozenset()
        self.topic_id = self._prepare()

    def close(self) -> None:
        self._admin.socket.close()
        self._client.socket.close()

    def _prepare(self) -> UUID:
        resources = [
            ResourcePattern(AclResource.TOPIC, "*"),
            ResourcePattern(AclResource.GROUP, "*"),
            ResourcePattern(AclResource.TRANSACTIONAL_ID, "*"),
            ResourcePattern(AclResource.CLUSTER, CLUSTER_NAME),
        ]
        base = [
            Acl(pattern, WHO, host, AclOperation.ALL, Permission.ALLOW)
            for pattern in resources
            for host in (ADMIN, BROKER)
        ]
        self._create(base)
        self._await(frozenset(base))
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        self._admin.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        for kind, name in ((0, GROUP), (1, TXN)):
            self._until_found(kind, name)
        self._until_loaded()
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
        (found,) = self._admin.call(asked, 12).topics
        topic_id: UUID = found.topic_id
        return topic_id

    def _until_found(self, kind: int, name: str) -> None:
        """Until the internal topic has a leader: its creation is not what is tested."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            asked = FindCoordinatorRequest(coordinator_keys=[name], key_type=kind)
            (found,) = self._admin.call(asked, 4).coordinators
            if found.error_code == 0:
                return
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def _until_loaded(self) -> None:
        """Until the transaction coordinator has read its log."""
        deadline = time.monotonic() + _PATIENCE_S
        asked = InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=1000)
        while (code := self._admin.call(asked, 4).error_code) != 0:
            assert time.monotonic() < deadline, code
            time.sleep(0.05)

    def set_rules(self, wanted: frozenset[Acl]) -> None:
        """Let these be the ACLs of the client, and return when the broker decides by them."""
        gone = self._rules - wanted
        if gone:
            filters = [
                DeleteAclsFilter(
                    resource_type_filter=acl.pattern.resource_type,
                    resource_name_filter=acl.pattern.name,
                    pattern_type_filter=acl.pattern.pattern_type,
                    principal_filter=acl.principal,
                    host_filter=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in gone
            ]
            for result in self._admin.call(DeleteAclsRequest(filters=filters), 3).filter_results:
                assert result.error_code == 0, result
                assert len(result.matching_acls) == 1, result
        self._create(list(wanted - self._rules))
        self._rules = wanted
        self._await(wanted)

    def _create(self, acls: list[Acl]) -> None:
        creations = [
            AclCreation(
                resource_type=acl.pattern.resource_type,
                resource_name=acl.pattern.name,
                resource_pattern_type=acl.pattern.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
        if creations:
            for result in self._admin.call(CreateAclsRequest(creations=creations), 3).results:
                assert result.error_code == 0, result

    def _await(self, wanted: frozenset[Acl]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            found = self._acls()
            kept = {acl for acl in found if acl.host not in (ADMIN, BROKER)}
            if kept == wanted or found == wanted:
                return
            assert time.monotonic() < deadline, (found, wanted)
            time.sleep(_PAUSE_S)

    def _acls(self) -> frozenset[Acl]:
        every = DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        return frozenset(
            Acl(
                ResourcePattern(
                    AclResource(one.resource_type),
                    one.resource_name,
                    PatternType(one.pattern_type),
                ),
                acl.principal,
                acl.host,
                AclOperation(acl.operation),
                Permission(acl.permission_type),
            )
            for one in self._admin.call(every, 3).resources
            for acl in one.acls
        )

    def ask(self, case: Case, version: int) -> Outcome:
        """What the client under test is answered."""
        response = self._client.call(_fitting(case.make(self.topic_id), version), version)
        codes: set[int] = set()
        names: set[str] = set()
        digest = _digest(response, codes, names)
        return Outcome(frozenset(codes), frozenset(names), digest)


def _fitting(message: Message, version: int) -> Message:
    """The message without what its version cannot carry."""
    empty = type(message)()
    for field in type(message).__slots__:
        value = getattr(message, field)
        if not has_field(type(message), field, version):
            setattr(message, field, getattr(empty, field))
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, Message):
                    _fitting(one, version)
    return message


_NAMES = ("name", "topic", "topic_name", "group_id", "transactional_id", "resource_name")


def _digest(message: Message, codes: set[int], names: set[str]) -> Any:
    """Error codes, names of resources and authorized operations, in one nested value."""
    found: list[Any] = []
    for field in type(message).__slots__:
        value = getattr(message, field)
        if field.endswith("error_code"):
            if field != "topic_config_error_code":
                codes.add(value)
            found.append((field, value))
        elif field in _NAMES or field.endswith("authorized_operations"):
            if isinstance(value, str):
                names.add(value)
            found.append((field, value))
        elif isinstance(value, Message):
            found.append((field, _digest(value, codes, names)))
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            parts = [_digest(one, codes, names) for one in value]
            if field != "configs" and field != "config_resources":
                found.append((field, sorted(parts, key=repr)))
    return tuple(found)


def wrong(cell: Cell, version: int, outcome: Outcome) -> str | None:
    """Why the answer is not what Kafka's documentation says; None if it is."""
    code = expected_error(cell)
    if cell.case.hides:
        right = (cell.need.name in outcome.names) == (code is None)
    elif code is None:
        right = not outcome.codes & _DENIALS
    else:
        right = code in outcome.codes
    if right:
        return None
    return f"{cell} version {version}: expected {code or 'no denial'}, got {outcome.digest}"


def different(cell: Cell, version: int, ours: Outcome, kafkas: Outcome) -> str | None:
    """How the two answers differ; None if they do not."""
    if ours.digest == kafkas.digest:
        return None
    return f"{cell} version {version}: Ottla {ours.digest}, Kafka {kafkas.digest}"


def compare(port: int, kafka_port: int, step: int = 1) -> tuple[int, list[str]]:
    """Run every `step`-th set of rules against both; how many cells, and what is wrong."""
    ours, kafkas = Subject(port), Subject(kafka_port)
    count = 0
    found: list[str | None] = []
    for number, cell in enumerate(cells()):
        if number % step:
            continue
        for subject in (ours, kafkas):
            subject.set_rules(rules(cell))
        for version in cell.case.versions:
            mine = ours.ask(cell.case, version)
            found += [wrong(cell, version, mine)]
            if cell.case.only_denials_agree and expected_error(cell) is None:
                continue
            count += 1
            found += [different(cell, version, mine, kafkas.ask(cell.case, version))]
    ours.close()
    kafkas.close()
    return count, [line for line in found if line]


def main() -> None:
    with ottla(settings=SETTINGS) as own, kafka(settings=SETTINGS, quick=True) as other:
        count, found = compare(own.port, other.port)
    for line in found:
        sys.stdout.write(line + "\n")
    sys.stdout.write(f"{count} cells, {len(found)} differences\n")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
