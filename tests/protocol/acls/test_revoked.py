"""A connection that was allowed until now is denied as soon as the rules change."""

from rig.broker import ottla
from rig.wire_client import WireClient

from ottla.security.acl import Acl, Pattern
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.wire.messages.fetch import FetchRequest
from tests.protocol.acls.cases import CASES, TOPIC, Case
from tests.protocol.acls.matrix import ADMIN, CLIENT, SETTINGS, WHO, Subject

_NONE, _DENIED = 0, 29


def _case(name: str) -> Case:
    (found,) = [case for case in CASES if case.name == name]
    return found


def _rule(operation: AclOperation) -> Acl:
    return Acl(Pattern(AclResource.TOPIC, TOPIC), WHO, CLIENT, operation, Permission.ALLOW)


def test_what_a_connection_has_learned_opens_nothing_after_a_revocation() -> None:
    """The fast paths of Produce and Fetch forget; allowed again, they serve again."""
    with ottla(settings=SETTINGS) as node:
        subject = Subject(node.port)
        for name, operation, version in (
            ("Produce", AclOperation.WRITE, 9),
            ("Fetch", AclOperation.READ, 11),
        ):
            for rules, expected in (
                (frozenset({_rule(operation)}), _NONE),
                (frozenset[Acl](), _DENIED),
                (frozenset({_rule(operation)}), _NONE),
            ):
                subject.set_rules(rules)
                for _ in range(5):
                    codes = subject.ask(_case(name), version).codes
                    assert codes - {_NONE} == {expected} - {_NONE}, name
        subject.close()


def test_a_fetch_that_waits_gets_nothing_after_a_revocation() -> None:
    """A long poll may wait for days: it is answered by the rules of its end, on both paths."""
    with ottla(settings=SETTINGS) as node:
        subject = Subject(node.port)
        rules = frozenset({_rule(AclOperation.READ)})
        version, fetch = 13, _case("Fetch").make(subject.topic_id)
        assert isinstance(fetch, FetchRequest)
        fetch.min_bytes, fetch.max_wait_ms = 1, 100_000
        place = fetch.topics[0].partitions[0]
        with (
            WireClient(node.port, from_host=CLIENT) as client,
            WireClient(node.port, from_host=ADMIN) as admin,
        ):
            # The first one takes the slow path; from the second answer on the connection knows it.
            for denied in (True, False, True):
                subject.set_rules(rules)
                client.send(client.frame(fetch, version))
                if denied:
                    subject.set_rules(frozenset())
                produced = admin.call(_case("Produce").make(subject.topic_id), 9)
                (written,) = produced.responses[0].partition_responses
                (found,) = client.response(1, version).responses[0].partitions
                assert (found.error_code, bool(found.records)) == (
                    (_DENIED, False) if denied else (_NONE, True)
                )
                place.fetch_offset = written.base_offset + 1
        subject.close()
