"""Which requests are lists of things that do not depend on each other, and how they are divided.

A long request of such an API is served as several short ones, whose answers are joined. Of what an
answer repeats in full, a name that comes twice in a request is looked up once. Does no I/O.
"""

from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from ottla.wire.api import ApiKey
from ottla.wire.source import STEP

# Elements of all lists in one request of a client: of an API that is served in portions, and of
# any other, which is served in one go, and for which so many hold the loop for less than 100 ms. A
# member of 10,000 partitions of as many topics has 30,000 elements in one ConsumerGroupHeartbeat.
ELEMENTS_MAX: Final = 250_000
WHOLE_ELEMENTS_MAX: Final = 60_000


class Divided(NamedTuple):
    """How the requests of an API are divided.

    `asked` are the fields that lead to the innermost elements of a request, `answers` those that
    lead to the answers to them. A portion has at most `most` of these elements. A request in which
    some have a name in the field `alike`, and others have none, is not divided.
    """

    asked: tuple[str, ...]
    answers: tuple[str, ...]
    most: int = STEP
    alike: str | None = None


class Repeated(NamedTuple):
    """How an API names elements that it refuses where one name comes twice in a request.

    `names` has the fields that make the name at each level. `is_once`: such a name is answered
    once, else as often as it comes.
    """

    names: tuple[tuple[str, ...], ...]
    is_once: bool


class Once(NamedTuple):
    """A list of a request whose elements are answered once for each name.

    `names` are the fields that make the name, none where elements are text or numbers. Where two
    elements of one name differ in the list `inner`, both of these are asked for; null stands for
    everything. In that list, too, each name is answered once where it is a `Once` itself.
    """

    field: str
    names: tuple[str, ...] = ()
    inner: "Once | str | None" = None


def _divided(asked: str, answers: str, most: int = STEP, alike: str | None = None) -> Divided:
    return Divided(tuple(asked.split(".")), tuple(answers.split(".")), most, alike)


_OF_PARTITIONS = (_divided("topics.partitions", "topics.partitions"),)

# By version, an API may have one of several lists. Not here are APIs whose elements belong together
# (a fetch session's, a transaction's), or which bound their sum, as CreateTopics.
DIVIDED: Final[dict[int, tuple[Divided, ...]]] = {
    ApiKey.METADATA: (_divided("topics", "topics"),),
    ApiKey.LIST_OFFSETS: _OF_PARTITIONS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _OF_PARTITIONS,
    ApiKey.DELETE_RECORDS: _OF_PARTITIONS,
    ApiKey.OFFSET_COMMIT: _OF_PARTITIONS,
    ApiKey.TXN_OFFSET_COMMIT: _OF_PARTITIONS,
    ApiKey.OFFSET_DELETE: _OF_PARTITIONS,
    ApiKey.OFFSET_FETCH: (
        _divided("groups.topics.partition_indexes", "groups.topics.partitions"),
        _divided("topics.partition_indexes", "topics.partitions"),
    ),
    ApiKey.FIND_COORDINATOR: (_divided("coordinator_keys", "coordinators"),),
    ApiKey.DESCRIBE_GROUPS: (_divided("groups", "groups", 64),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (_divided("group_ids", "groups", 64),),
    ApiKey.SHARE_GROUP_DESCRIBE: (_divided("group_ids", "groups", 64),),
    ApiKey.DELETE_GROUPS: (_divided("groups_names", "results"),),
    ApiKey.DESCRIBE_CONFIGS: (_divided("resources", "results", 8),),
    ApiKey.DESCRIBE_PRODUCERS: (_divided("topics.partition_indexes", "topics.partitions", 64),),
    ApiKey.DESCRIBE_TRANSACTIONS: (_divided("transactional_ids", "transaction_states"),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        _divided("groups.topics.partitions", "groups.topics.partitions", 64),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        _divided("topics.partition_indexes", "topics.partitions"),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_divided("topics.partitions", "responses.partitions"),),
    ApiKey.ELECT_LEADERS: (
        _divided("topic_partitions.partitions", "replica_election_results.partition_result"),
    ),
    ApiKey.PRODUCE: (_divided("topic_data.partition_data", "responses.partition_responses"),),
    ApiKey.CREATE_PARTITIONS: (_divided("topics", "results", 64),),
    # A topic may be named by its name and by its id: both are refused.
    ApiKey.DELETE_TOPICS: (
        _divided("topics", "responses", alike="name"),
        _divided("topic_names", "responses"),
    ),
    ApiKey.ALTER_CONFIGS: (_divided("resources", "responses", 64),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (_divided("resources", "responses", 64),),
    ApiKey.WRITE_TXN_MARKERS: (
        _divided("markers.topics.partition_indexes", "markers.topics.partitions"),
    ),
}

_RESOURCES = Repeated((("resource_type", "resource_name"),), is_once=False)
REPEATED: Final[dict[int, Repeated]] = {
    ApiKey.LIST_OFFSETS: Repeated((("name",), ("partition_index",)), is_once=False),
    ApiKey.CREATE_PARTITIONS: Repeated((("name",),), is_once=True),
    ApiKey.DELETE_TOPICS: Repeated((("name", "topic_id"),), is_once=True),
    ApiKey.ALTER_CONFIGS: _RESOURCES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _RESOURCES,
}

_INDEXES = Once("partition_indexes")
ONCE: Final[dict[int, tuple[Once, ...]]] = {
    ApiKey.METADATA: (Once("topics", ("topic_id", "name")),),
    ApiKey.OFFSET_FETCH: (
        Once("groups", ("group_id",), Once("topics", ("name", "topic_id"), _INDEXES)),
        Once("topics", ("name",), _INDEXES),
    ),
    ApiKey.DESCRIBE_GROUPS: (Once("groups"),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Once("group_ids"),),
    ApiKey.SHARE_GROUP_DESCRIBE: (Once("group_ids"),),
    ApiKey.DESCRIBE_CONFIGS: (
        Once("resources", ("resource_type", "resource_name"), "configuration_keys"),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (Once("topics", ("name",), _INDEXES),),
    ApiKey.DESCRIBE_TRANSACTIONS: (Once("transactional_ids"),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        Once("groups", ("group_id",), Once("topics", ("topic_name",), Once("partitions"))),
    ),
}

# Their elements have lists that are not divided.
_ALTERS: Final = (
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
)
# Lists that ask for everything where they are empty, as where they are null.
_EMPTY_IS_ALL: Final = ("configuration_keys",)
# What names an element in a request, and in the answer to it.
_NAMES: Final = ("group_id", "name", "topic_name", "topic", "topic_id", "producer_id")
# Where the answer to an element is searched for: among so many, portions being short.
_NEAR: Final = 2 * STEP


def elements_max(api_key: int) -> int:
    """How many elements the lists of a client's request may have, all together."""
    is_divided = api_key in DIVIDED and api_key not in _ALTERS
    return ELEMENTS_MAX if is_divided else WHOLE_ELEMENTS_MAX


def division(api_key: int, body: Any) -> Divided | None:
    """How a request is divided; None where it is not, or is short."""
    for divided in DIVIDED.get(api_key, ()):
        items = getattr(body, divided.asked[0])
        if items:
            if _count(items, divided.asked[1:]) <= divided.most:
                return None
            alike = divided.alike
            if alike and len({getattr(one, alike) is None for one in items}) > 1:
                return None
            return divided
    return None


def _count(items: Sequence[Any], inner: Sequence[str]) -> int:
    """How many elements the lists have, and those in them."""
    if not inner:
        return len(items)
    return len(items) + sum(_count(getattr(one, inner[0]) or (), inner[1:]) for one in items)


def answer_once(api_key: int, body: Any) -> Generator[None, None, None]:
    """Leave each name in the body once, where `ONCE` says so; pauses after each STEP elements."""
    for once in ONCE.get(api_key, ()):
        yield from _once(body, once)


def _once(holder: Any, once: Once) -> Generator[None, None, None]:
    items = getattr(holder, once.field)
    if not items:
        return
    if not once.names:
        setattr(holder, once.field, list(dict.fromkeys(items)))
        return
    found: dict[tuple[Any, ...], Any] = {}
    inner = once.inner.field if isinstance(once.inner, Once) else once.inner
    for index, item in enumerate(items):
        if index % STEP == STEP - 1:
            yield
        name = tuple([getattr(item, field) for field in once.names])
        first = found.setdefault(name, item)
        if first is not item and inner is not None:
            _add(first, item, inner)
    setattr(holder, once.field, list(found.values()))
    if isinstance(once.inner, Once):
        for item in found.values():
            yield
            yield from _once(item, once.inner)


def _add(first: Any, item: Any, inner: str) -> None:
    """Let `first` ask for what `item` asks for, too."""
    wanted, more = getattr(first, inner), getattr(item, inner)
    if wanted is None or more is None or (inner in _EMPTY_IS_ALL and not (wanted and more)):
        setattr(first, inner, None)
    else:
        wanted += more


def take_repeated(api_key: int, body: Any, divided: Divided) -> Generator[None, None, Any]:
    """Take out of the body what `REPEATED` refuses; pauses after each STEP elements.

    Returns a body with it; None where there is nothing of the kind.
    """
    rule = REPEATED.get(api_key)
    if rule is None:
        return None
    counts: Counter[Hashable] = Counter()
    for index, (name, _, _) in enumerate(_named(body, divided, rule)):
        if index % STEP == STEP - 1:
            yield
        counts[name] += 1
    if counts.total() == len(counts):
        return None
    field = divided.asked[0]
    single: list[Any] = []
    repeated: list[Any] = []
    answered: set[Hashable] = set()
    for index, (name, parents, item) in enumerate(_named(body, divided, rule)):
        if index % STEP == STEP - 1:
            yield
        if counts[name] == 1:
            _put(single, divided, parents, item)
        elif not rule.is_once or name not in answered:
            answered.add(name)
            _put(repeated, divided, parents, item)
    refused = _with(body, field, repeated)
    setattr(body, field, single)
    return refused


def _named(
    body: Any, divided: Divided, rule: Repeated
) -> Iterator[tuple[Hashable, tuple[Any, ...], Any]]:
    """The innermost elements: the name of each, the element around it if any, and itself."""
    outer = getattr(body, divided.asked[0])
    if len(divided.asked) == 1:
        for item in outer:
            yield _name(item, rule.names[0]), (), item
        return
    for parent in outer:
        around = _name(parent, rule.names[0])
        for item in getattr(parent, divided.asked[1]):
            yield (around, _name(item, rule.names[1])), (parent,), item


def _name(item: Any, fields: tuple[str, ...]) -> Hashable:
    return item if isinstance(item, str) else tuple([getattr(item, field) for field in fields])


def _put(items: list[Any], divided: Divided, parents: tuple[Any, ...], item: Any) -> None:
    """Add an element to the list, in a copy of the element around it."""
    if not parents:
        items.append(item)
        return
    (parent,), field = parents, divided.asked[1]
    # Elements around that follow each other with one name are one.
    if not items or not _are_one(items[-1], parent):
        items.append(_with(parent, field, []))
    getattr(items[-1], field).append(item)


def portions(body: Any, divided: Divided) -> Iterator[Any]:
    """Bodies that together ask for what `body` does, each for at most `divided.most` elements."""
    field, inner = divided.asked[0], divided.asked[1:]
    for items, _ in _parts(getattr(body, field), inner, divided.most):
        yield _with(body, field, items)


def _parts(
    items: Sequence[Any], inner: Sequence[str], most: int
) -> Iterator[tuple[list[Any], int]]:
    """Lists that together are `items`, and how many elements each has."""
    if not inner:
        for start in range(0, len(items), most):
            part = list(items[start : start + most])
            yield part, len(part)
        return
    part, size = [], 0
    for item in items:
        for piece, piece_size in _pieces(item, inner, most):
            if part and size + piece_size > most:
                yield part, size
                part, size = [], 0
            part.append(piece)
            size += piece_size
    if part:
        yield part, size


def _pieces(item: Any, inner: Sequence[str], most: int) -> Iterator[tuple[Any, int]]:
    """The item, or several of its name that share what it has."""
    own = getattr(item, inner[0])
    parts = _parts(own or (), inner[1:], most)
    _, size = next(parts, (None, 0))
    if not own or next(parts, None) is None:
        yield item, 1 + size
        return
    for part, size in _parts(own, inner[1:], most):
        yield _with(item, inner[0], part), 1 + size


def _with(message: Any, field: str, value: Any) -> Any:
    """A copy of a message with another value of one field."""
    made = object.__new__(type(message))
    for name in message.__slots__:
        setattr(made, name, getattr(message, name))
    setattr(made, field, value)
    return made


class Edges(NamedTuple):
    """The first and the last element of a portion, from the outermost list inwards.

    Taken before it is served: checks of rights leave out of a body what is denied.
    """

    first: list[Any]
    last: list[Any]


def edges(body: Any, divided: Divided) -> Edges:
    """The edges of a portion; the innermost elements stand for themselves, and are left out."""
    found = Edges([], [])
    first = last = body
    for field in divided.asked[:-1]:
        firsts, lasts = getattr(first, field), getattr(last, field)
        if not firsts or not lasts:
            break
        first, last = firsts[0], lasts[-1]
        found.first.append(first)
        found.last.append(last)
    return found


def join(response: Any, more: Any, divided: Divided, before: Edges, after: Edges) -> None:
    """Add to the response the one to the next portion, whose edges are `after`."""
    names = list(zip(before.last, after.first, strict=False))
    _join(response, more, divided.answers, names)
    if "node_endpoints" in type(response).__slots__:
        known = {one.node_id for one in response.node_endpoints}
        new = [one for one in more.node_endpoints if one.node_id not in known]
        response.node_endpoints = [*response.node_endpoints, *new]


def _join(
    response: Any, more: Any, answers: Sequence[str], names: Sequence[tuple[Any, Any]]
) -> None:
    """`names` has what was asked for last and first, where an element may have been divided."""
    found, rest = getattr(response, answers[0]), getattr(more, answers[0])
    if names and _are_one(*names[0]):
        item = names[0][1]
        begun, goes_on = _answer_to(item, reversed(found)), _answer_to(item, rest)
        if begun is not None and goes_on is not None:
            _join_one(begun, goes_on, answers[1:], names[1:])
            rest = [one for one in rest if one is not goes_on]
    found += rest


def _join_one(
    begun: Any, goes_on: Any, answers: Sequence[str], names: Sequence[tuple[Any, Any]]
) -> None:
    """Join the answers to one element; an error of either is that of the whole, as in Kafka."""
    failed = next((one for one in (begun, goes_on) if getattr(one, "error_code", 0)), None)
    if failed is None:
        _join(begun, goes_on, answers, names)
        return
    for field in type(begun).__slots__:
        setattr(begun, field, getattr(failed, field))


def _answer_to(item: Any, answers: Iterable[Any]) -> Any:
    return next((one for one in islice(answers, _NEAR) if _are_one(item, one)), None)


def _are_one(one: Any, other: Any) -> bool:
    """Whether two elements have the same name."""
    slots = type(other).__slots__
    return all(
        getattr(one, name) == getattr(other, name)
        for name in _NAMES
        if name in type(one).__slots__ and name in slots
    )
