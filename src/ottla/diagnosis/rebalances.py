"""Rebalances of groups in words.

Apart from `decisions`, so that brokers of tests can describe rebalances without a client.
"""

from ottla.base.quantities import iso
from ottla.wire.messages.decisions import DescribedRebalance, RebalanceCause


def first_cause(one: DescribedRebalance) -> str | None:
    """Describe the first cause and its member, and count the other causes; None without causes."""
    if not one.causes:
        return None
    first = one.causes[0]
    name = first.instance_id or first.client_id or first.member_id
    more = len(one.causes) - 1 + one.causes_omitted
    words = f"{name} {first.kind}" if name else first.kind
    return f"{words} (and {more} more)" if more else words


def rebalance_lines(one: DescribedRebalance) -> list[str]:
    """Describe a rebalance: a headline, then its causes and what it cost, a line each."""
    lasted = "" if one.duration_ms < 0 else f" after {one.duration_ms} ms"
    lines = [
        f"{iso(one.began_ms)}  {one.protocol} protocol, epoch {one.epoch}: {one.ending}{lasted}"
    ]
    for cause in one.causes:
        lines.append(f"because     {_member(cause)}{cause.words}")
        if cause.setting is not None:
            lines.append(f"decided by  {cause.setting}")
    if one.causes_omitted:
        lines.append(f"because     of {one.causes_omitted} more")
    if one.formed_ms >= 0:
        until = "all had joined" if one.ended_by is None else one.ended_by
        lines.append(f"waited      {one.formed_ms} ms for members, until {until}")
    if one.moved >= 0:
        lines.append(f"moved       {one.moved} of {one.partitions} partitions")
    if one.without_members:
        longest = one.waits[0]
        lines.append(
            f"stopped     {one.without_members} of {one.members} members, "
            f"{longest.member_id} for longest: {longest.without_ms} ms"
        )
    elif one.ending == "stable":
        lines.append("stopped     no member")
    return lines


def _member(cause: RebalanceCause) -> str:
    if not cause.member_id:
        return ""
    place = f" at {cause.host.removeprefix('/')}" if cause.host else ""
    return f"{cause.member_id}{place}: "
