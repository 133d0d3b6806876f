"""Every API checks what Kafka checks, under no rule, ALLOW, DENY, prefix, wildcard and host."""

import pytest
from rig.broker import ottla
from rig.kafka import available, kafka

from tests.integration.protocol.acls.matrix import SETTINGS, Subject, cells, compare, rules, wrong
from tests.integration.protocol.acls.patterns import SHOWN, assigned_in_turn
from tests.integration.protocol.acls.waiting import waiting_fetches
from tests.integration.protocol.security.pair import until


def test_ottla_allows_and_denies_what_kafkas_documentation_says():
    """All cells: an allowed request has no error of authorization, a denied one that error."""
    with ottla(settings=SETTINGS) as node:
        subject = Subject(node.port)
        found = []
        for cell in cells():
            subject.set_rules(rules(cell))
            found += [wrong(cell, v, subject.ask(cell.case, v)) for v in cell.case.versions]
        subject.close()
    assert len(found) > 1000
    assert [line for line in found if line] == []


@pytest.mark.skipif(available() is not None, reason=str(available()))
def test_ottla_and_kafka_answer_a_sample_of_the_cells_alike():
    """Codes, names and authorized operations.

    All cells: `python -m tests.integration.protocol.acls.matrix`.

    Kafka alone answers a fetch that waits with the record that comes after a revocation. A pattern
    finds what its member may DESCRIBE there, too.
    """
    with ottla(settings=SETTINGS) as own, kafka(settings=SETTINGS, quick=True) as other:
        # Tried again where the revocation came before the fetch.
        until(lambda: waiting_fetches(other.port, [True]), lambda fetches: fetches == [(0, True)])
        assert assigned_in_turn(other.port, frozenset({SHOWN})) == [{SHOWN}]
        count, found = compare(own.port, other.port, step=3)
    assert count >= 300
    assert found == []
