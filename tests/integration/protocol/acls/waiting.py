"""Fetches that wait for records while the rules change."""

from collections.abc import Iterable

from rig.wire_client import WireClient

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.wire.messages.fetch import FetchRequest
from tests.integration.protocol.acls.cases import CASES, TOPIC, Case
from tests.integration.protocol.acls.matrix import ADMIN, CLIENT, WHO, Subject

_READ = Acl(
    ResourcePattern(AclResource.TOPIC, TOPIC), WHO, CLIENT, AclOperation.READ, Permission.ALLOW
)


def waiting_fetches(port: int, revoked: Iterable[bool]) -> list[tuple[int, bool]]:
    """The error of each fetch, and whether it got the record that came.

    One after the other, on one connection; READ is withdrawn before the record comes, or not.
    """
    found: list[tuple[int, bool]] = []
    subject = Subject(port)
    version, fetch = 13, _case("Fetch").make(subject.topic_id)
    assert isinstance(fetch, FetchRequest)
    fetch.min_bytes, fetch.max_wait_ms = 1, 100_000
    place = fetch.topics[0].partitions[0]
    with (
        WireClient(port, from_host=CLIENT) as client,
        WireClient(port, from_host=ADMIN) as admin,
    ):
        for is_revoked in revoked:
            subject.set_rules(frozenset({_READ}))
            client.send(client.frame(fetch, version))
            if is_revoked:
                subject.set_rules(frozenset())
            produced = admin.call(_case("Produce").make(subject.topic_id), 9)
            (written,) = produced.responses[0].partition_responses
            (one,) = client.response(1, version).responses[0].partitions
            found.append((one.error_code, bool(one.records)))
            place.fetch_offset = written.base_offset + 1
    subject.close()
    return found


def _case(name: str) -> Case:
    (found,) = [case for case in CASES if case.name == name]
    return found
