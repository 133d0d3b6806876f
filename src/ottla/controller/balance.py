"""Plans the placement of replicas: evenly, on other brokers, or off one. Moves nothing.

A plan is the new replica list of each partition that changes, the preferred leader first. Few
replicas move, since each one is copied whole; reordering costs nothing. `brokers` maps the live
brokers to their racks; if one of them has none, racks are ignored.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition

Lists = Mapping[TopicPartition, Sequence[int]]
Racks = Mapping[int, str | None]
Plan = dict[TopicPartition, tuple[int, ...]]


def balanced(lists: Lists, brokers: Racks, fixed: Collection[TopicPartition] = ()) -> Plan:
    """Plan equal numbers of replicas, and of preferred leaders, on all brokers.

    The numbers differ by one at most, unless these rules prevent it: no partition is spread over
    fewer racks than before, replicas on dead brokers stay, and `fixed` partitions, which are being
    reassigned already, are counted but not changed.
    """
    brokers = _counting(brokers)
    after = {name: list(lists[name]) for name in sorted(lists)}
    movable = [name for name in after if name not in fixed]
    _even_replicas(after, brokers, movable)
    _even_leaders(after, brokers, movable)
    return _changed(lists, after)


def off(lists: Lists, leaving: int, brokers: Racks) -> Plan:
    """Move every replica off the broker `leaving`. Raises OttlaError if too few others are live."""
    others = {b: rack for b, rack in _counting(brokers).items() if b != leaving}
    after = {name: list(lists[name]) for name in sorted(lists)}
    moving = [name for name, replicas in after.items() if leaving in replicas]
    loads = _loads(after.values(), others)
    for name in moving:
        kept = [broker for broker in after[name] if broker != leaving]
        after[name] = _filled(name, kept, len(after[name]), others, loads)
    _even_leaders(after, others, moving)
    return _changed(lists, after)


def follow_only(lists: Lists, leaving: int, brokers: Racks) -> Plan:
    """Give `leaving`'s preferred leadership to other brokers, in each partition that allows it.

    A partition allows it if it has another live replica. No replica moves.
    """
    after = {name: list(lists[name]) for name in sorted(lists)}
    moving: list[TopicPartition] = []
    for name, replicas in after.items():
        others = [broker for broker in replicas if broker != leaving and broker in brokers]
        if leaving in replicas and others:
            rest = [broker for broker in replicas if broker not in (others[0], leaving)]
            after[name] = [others[0], *rest, leaving]
            moving.append(name)
    _even_leaders(after, {b: r for b, r in brokers.items() if b != leaving}, moving)
    return _changed(lists, after)


def onto(lists: Lists, chosen: Racks, factor: int | None = None) -> Plan:
    """Give each partition `factor` replicas, all on the brokers `chosen`.

    If `factor` is None, each keeps its replication factor. Raises OttlaError if `chosen` has too
    few brokers.
    """
    chosen = _counting(chosen)
    after = {name: list(lists[name]) for name in sorted(lists)}
    kept = {name: [b for b in replicas if b in chosen] for name, replicas in after.items()}
    loads = _loads(kept.values(), chosen)
    for name, replicas in after.items():
        wanted = len(replicas) if factor is None else factor
        for broker in kept[name][wanted:]:
            loads[broker] -= 1
        after[name] = _filled(name, kept[name][:wanted], wanted, chosen, loads)
    _even_replicas(after, chosen, after)
    _even_leaders(after, chosen, after)
    return _changed(lists, after)


def _filled(
    name: TopicPartition, kept: list[int], factor: int, brokers: Racks, loads: dict[int, int]
) -> list[int]:
    """Add brokers to `kept` up to `factor`, preferring new racks, then the least loaded broker."""
    replicas = list(kept)
    while len(replicas) < factor:
        candidates = [broker for broker in brokers if broker not in replicas]
        if not candidates:
            raise OttlaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{name} is to have {factor} replicas, and there are only {len(brokers)} brokers "
                f"for them: {sorted(brokers)}; start another, or let it have fewer replicas",
            )
        racks = {brokers.get(broker) for broker in replicas} - {None}
        chosen = min(candidates, key=lambda b: (brokers[b] in racks, loads[b], b))
        replicas.append(chosen)
        loads[chosen] += 1
    return replicas


def _counting(brokers: Racks) -> Racks:
    """Return `brokers` with their racks, or without any racks if one of them has none.

    If racks were not ignored then, the broker without a rack would be overloaded.
    """
    return brokers if None not in brokers.values() else dict.fromkeys(brokers)


def _even_replicas(
    after: dict[TopicPartition, list[int]], brokers: Racks, movable: Collection[TopicPartition]
) -> None:
    """Move replicas from the most to the least loaded broker until their loads are even."""
    loads = _loads(after.values(), brokers)
    while _move_one(after, brokers, movable, loads):
        pass


def _move_one(
    after: dict[TopicPartition, list[int]],
    brokers: Racks,
    movable: Iterable[TopicPartition],
    loads: dict[int, int],
) -> bool:
    # Each move reduces the sum of squares, so the loop ends.
    pairs = [(loads[less] - loads[more], more, less) for more in loads for less in loads]
    for difference, heavy, light in sorted(pairs):
        if difference >= -1:
            break
        for name in movable:
            replicas = after[name]
            if heavy not in replicas or light in replicas:
                continue
            moved = [light if broker == heavy else broker for broker in replicas]
            if _spread(moved, brokers) >= _spread(replicas, brokers):
                after[name] = moved
                loads[heavy] -= 1
                loads[light] += 1
                return True
    return False


def _even_leaders(
    after: dict[TopicPartition, list[int]], brokers: Racks, movable: Iterable[TopicPartition]
) -> None:
    """Reorder replica lists so that all brokers are preferred leaders about equally often."""
    names = list(movable)
    leads = dict.fromkeys(brokers, 0)
    for replicas in after.values():
        if replicas[0] in leads:
            leads[replicas[0]] += 1
    while True:
        for heavy in sorted(leads, key=lambda broker: (-leads[broker], broker)):
            steps = _handing_down(heavy, after, names, leads)
            if steps:
                break
        else:
            return
        for name, broker in steps:
            replicas = after[name]
            place = replicas.index(broker)
            replicas[0], replicas[place] = broker, replicas[0]
        leads[heavy] -= 1
        leads[steps[-1][1]] += 1


def _handing_down(
    heavy: int,
    after: dict[TopicPartition, list[int]],
    names: list[TopicPartition],
    leads: dict[int, int],
) -> list[tuple[TopicPartition, int]]:
    """Return the shortest chain of reorderings that moves one lead away from `heavy`.

    It ends at a broker that is preferred leader of at least two partitions fewer. It is empty if
    there is no such chain.
    """
    led: dict[int, list[TopicPartition]] = {}
    for name in names:
        led.setdefault(after[name][0], []).append(name)
    came: dict[int, tuple[int, TopicPartition]] = {}
    queue = deque([heavy])
    while queue:
        giver = queue.popleft()
        for name in led.get(giver, ()):
            for taker in after[name][1:]:
                if taker in came or taker == heavy or taker not in leads:
                    continue
                came[taker] = giver, name
                if leads[heavy] - leads[taker] > 1:
                    return _chain(heavy, taker, came)
                queue.append(taker)
    return []


def _chain(
    heavy: int, last: int, came: dict[int, tuple[int, TopicPartition]]
) -> list[tuple[TopicPartition, int]]:
    steps: list[tuple[TopicPartition, int]] = []
    taker = last
    while taker != heavy:
        giver, name = came[taker]
        steps.append((name, taker))
        taker = giver
    return steps[::-1]


def _loads(lists: Iterable[Collection[int]], brokers: Racks) -> dict[int, int]:
    loads = dict.fromkeys(sorted(brokers), 0)
    for replicas in lists:
        for broker in replicas:
            if broker in loads:
                loads[broker] += 1
    return loads


def _spread(replicas: Sequence[int], brokers: Racks) -> int:
    """The number of racks of the replicas; a broker without a rack counts as its own rack."""
    return len({brokers.get(broker) or broker for broker in replicas})


def _changed(before: Lists, after: Mapping[TopicPartition, Sequence[int]]) -> Plan:
    return {
        name: tuple(replicas) for name, replicas in after.items() if [*before[name]] != [*replicas]
    }
