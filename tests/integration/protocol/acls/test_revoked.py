"""A connection that was allowed until now is denied as soon as the rules change."""

from rig.broker import ottla

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import AclOperation, AclResource, Permission
from tests.integration.protocol.acls.cases import CASES, TOPIC, Case
from tests.integration.protocol.acls.matrix import CLIENT, SETTINGS, WHO, Subject
from tests.integration.protocol.acls.waiting import waiting_fetches

_NONE, _DENIED = 0, 29


def _case(name: str) -> Case:
    (found,) = [case for case in CASES if case.name == name]
    return found


def _rule(operation: AclOperation) -> Acl:
    return Acl(ResourcePattern(AclResource.TOPIC, TOPIC), WHO, CLIENT, operation, Permission.ALLOW)


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
        # The first one takes the slow path; from the second answer on the connection knows it.
        answers = waiting_fetches(node.port, (True, False, True))
    assert answers == [(_DENIED, False), (_NONE, True), (_DENIED, False)]
