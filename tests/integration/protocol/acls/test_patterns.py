"""Patterns of consumer groups find no topic that the client may not DESCRIBE."""

from rig.broker import ottla

from tests.integration.protocol.acls.matrix import SETTINGS
from tests.integration.protocol.acls.patterns import HIDDEN, SHOWN, assigned_in_turn


def test_a_pattern_finds_what_the_client_may_describe_now() -> None:
    """Rules that change hold from the member's next heartbeat on, in both directions."""
    steps = [frozenset({SHOWN}), frozenset({SHOWN, HIDDEN}), frozenset({HIDDEN})]
    with ottla(settings=SETTINGS) as node:
        assert assigned_in_turn(node.port, *steps) == [set(step) for step in steps]
