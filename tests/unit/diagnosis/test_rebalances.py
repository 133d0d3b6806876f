"""What is said first of a rebalance."""

from ottla.diagnosis.rebalances import first_cause
from ottla.wire.messages.decisions import DescribedRebalance, RebalanceCause


def cause(
    kind: str, member: str = "", client: str = "", instance: str | None = None
) -> RebalanceCause:
    return RebalanceCause(
        at_ms=0,
        kind=kind,
        member_id=member,
        client_id=client,
        host="",
        instance_id=instance,
        words="",
        setting=None,
        is_trigger=True,
    )


def rebalance(*causes: RebalanceCause, omitted: int = 0) -> DescribedRebalance:
    return DescribedRebalance(
        protocol="classic",
        epoch=1,
        began_ms=0,
        ending="stable",
        duration_ms=1,
        formed_ms=1,
        ended_by=None,
        members=1,
        partitions=1,
        moved=0,
        causes=list(causes),
        causes_omitted=omitted,
        without_members=0,
        without_total_ms=0,
        waits=[],
    )


def test_the_first_cause_names_the_member_as_people_know_it() -> None:
    """By its static name, else its client id, else its member id; some causes have no member."""
    assert first_cause(rebalance(cause("joined", "m-1", "c", "i"))) == "i joined"
    assert first_cause(rebalance(cause("left", "m-1", "c"))) == "c left"
    assert first_cause(rebalance(cause("left", "m-1"))) == "m-1 left"
    assert first_cause(rebalance(cause("partitions changed"))) == "partitions changed"


def test_other_causes_are_counted() -> None:
    """With those that the broker left out of its answer."""
    both = rebalance(cause("joined", client="a"), cause("joined", client="b"), omitted=3)
    assert first_cause(both) == "a joined (and 4 more)"
    assert first_cause(rebalance()) is None
