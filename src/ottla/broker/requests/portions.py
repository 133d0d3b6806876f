"""Divides a long request into shorter ones, if the elements of its lists are independent.

The declaration of an API names the lists that can be divided. A long request is served as several
short ones, whose answers are joined. If the answers of an API describe each named element in full,
a name that occurs twice in a request is answered once. Does no I/O.
"""

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ottla.wire.notation import with_list
from ottla.wire.source import STEP

# A request or an element of it, and an element of a list in that; the same for the response.
Q = TypeVar("Q")
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
A = TypeVar("A")

# The most elements in all lists of one client request. An API that is not served in portions can
# handle this many at once, blocking the loop for less than 100 ms. For comparison: the
# ConsumerGroupHeartbeat of a member with 10,000 partitions, all of different topics, has 30,000.
ELEMENTS_MAX: Final = 250_000
WHOLE_ELEMENTS_MAX: Final = 60_000
# How many answers are searched for the answer to an element; portions are short.
_NEAR: Final = 2 * STEP


# -- declarations of an API


@dataclass(slots=True, eq=False, repr=False)
class Items(Generic[Q, R]):
    """A list of a request and the list of answers to its elements; see `items`."""

    asked: Callable[[Q], list[Any] | None]
    answers: Callable[[R], list[Any]]
    name: Callable[[Any], Hashable]
    answered: Callable[[Any], Hashable]
    error: Callable[[Any], int]
    inner: "Items[Any, Any] | None"


def items(
    asked: Callable[[Q], list[I] | None],
    answers: Callable[[R], list[A]],
    name: Callable[[I], Hashable] = lambda item: item,
    *,
    answered: Callable[[A], Hashable] | None = None,
    error: Callable[[A], int] = lambda _answer: 0,
    inner: Items[I, A] | None = None,
) -> Items[Q, R]:
    """Pair a list of a request with the list of its answers; both may contain lists.

    The `name` of an element equals the `answered` of its answer. An `error` in an answer applies to
    the whole element, even if the element was divided.
    """
    return Items(asked, answers, name, answered or name, error, inner)


class Repeated(Enum):
    """How an API answers repeated elements, which it refuses: once for all, or each of them."""

    ANSWERED_ONCE = 1
    ANSWERED_EACH = 2


@dataclass(slots=True, eq=False, repr=False)
class Portions(Generic[Q, R]):
    """How the requests of an API are divided.

    A portion has at most `most` of the innermost elements of `items`. A request is divided only if
    `alike` returns the same value for all its elements.
    """

    items: Items[Q, R]
    most: int
    repeated: Repeated | None
    alike: Callable[[Any], Hashable] | None
    # Merges the fields of the second response, except the items, into the first response.
    also: Callable[[R, R], None] | None
    # Whether the elements contain lists that are not divided.
    keeps_lists: bool


def in_portions(
    asked: Callable[[Q], list[I] | None],
    answers: Callable[[R], list[A]],
    name: Callable[[I], Hashable] = lambda item: item,
    *,
    answered: Callable[[A], Hashable] | None = None,
    error: Callable[[A], int] = lambda _answer: 0,
    inner: Items[I, A] | None = None,
    most: int = STEP,
    repeated: Repeated | None = None,
    alike: Callable[[I], Hashable] | None = None,
    also: Callable[[R, R], None] | None = None,
    keeps_lists: bool = False,
) -> tuple[Portions[Q, R], ...]:
    """Define one way to divide requests: see `items` and `Portions`. Combine several with `+`."""
    lists = items(asked, answers, name, answered=answered, error=error, inner=inner)
    return (Portions(lists, most, repeated, alike, also, keeps_lists),)


@dataclass(slots=True, eq=False, repr=False)
class Once(Generic[Q]):
    """A list of a request in which a repeated name is answered only once; see `once`."""

    asked: Callable[[Q], list[Any] | None]
    name: Callable[[Any], Hashable] | None
    add: Callable[[Any, Any], None] | None
    inner: "tuple[Once[Any], ...]"


def once(
    asked: Callable[[Q], list[I] | None],
    name: Callable[[I], Hashable] | None = None,
    add: Callable[[I, I], None] | None = None,
    *,
    inner: tuple[Once[I], ...] = (),
) -> tuple[Once[Q], ...]:
    """Declare a list in which elements with the same name are answered once.

    Without `name` the elements themselves are compared. `add` merges what a repeated element
    requests into the first one. Combine several lists with `+`.
    """
    return (Once(asked, name, add, inner),)


# -- requests


def elements_max(ways: Sequence[Portions[Any, Any]]) -> int:
    """Return how many elements a request's lists may have, unless its API sets a lower limit."""
    return ELEMENTS_MAX if ways and not ways[0].keeps_lists else WHOLE_ELEMENTS_MAX


def division(ways: Sequence[Portions[Q, R]], body: Q) -> Portions[Q, R] | None:
    """Return how to divide a request, or None if it cannot be divided or is short.

    An API may have several ways, because its versions use different lists.
    """
    for way in ways:
        wanted = way.items.asked(body)
        if wanted:
            if _count(wanted, way.items.inner) <= way.most:
                return None
            is_alike = way.alike is None or len(set(map(way.alike, wanted))) == 1
            return way if is_alike else None
    return None


def _count(wanted: Sequence[Any], inner: Items[Any, Any] | None) -> int:
    """Count the elements of the lists, including nested ones."""
    if inner is None:
        return len(wanted)
    return len(wanted) + sum(_count(inner.asked(one) or (), inner.inner) for one in wanted)


def answer_once(lists: Sequence[Once[Any]], body: Any) -> Generator[None, None, None]:
    """Remove repeated names from the lists of the body; yield after each STEP elements."""
    for each in lists:
        wanted = each.asked(body)
        if not wanted:
            continue
        if each.name is None:
            wanted[:] = dict.fromkeys(wanted)
            continue
        found: dict[Hashable, Any] = {}
        for index, item in enumerate(wanted):
            if index % STEP == STEP - 1:
                yield
            first = found.setdefault(each.name(item), item)
            if first is not item and each.add is not None:
                each.add(first, item)
        wanted[:] = found.values()
        # The names are freed in slices, too.
        while found:
            found.popitem()
            if found and len(found) % STEP == 0:
                yield
        if each.inner:
            for item in wanted:
                yield
                yield from answer_once(each.inner, item)


def take_repeated(body: Q, way: Portions[Q, Any]) -> Generator[None, None, Q | None]:
    """Remove the elements that the API refuses as repeated; yield after each STEP elements.

    Return a body with the removed elements, or None if there are none.
    """
    wanted = way.items.asked(body)
    if way.repeated is None or wanted is None:
        return None
    counts: Counter[Hashable] = Counter()
    for index, (name, _, _) in enumerate(_named(wanted, way.items)):
        if index % STEP == STEP - 1:
            yield
        counts[name] += 1
    if counts.total() == len(counts):
        return None
    single: list[Any] = []
    repeated: list[Any] = []
    answered: set[Hashable] = set()
    for index, (name, parent, item) in enumerate(_named(wanted, way.items)):
        if index % STEP == STEP - 1:
            yield
        if counts[name] == 1:
            _put(single, way.items, parent, item)
        elif way.repeated is Repeated.ANSWERED_EACH or name not in answered:
            answered.add(name)
            _put(repeated, way.items, parent, item)
    refused = with_list(body, wanted, repeated)
    wanted[:] = single
    return refused


def _named(wanted: list[Any], of: Items[Any, Any]) -> Iterator[tuple[Hashable, Any, Any]]:
    """Iterate over the innermost elements, with their names and containing elements."""
    for item in wanted:
        if of.inner is None:
            yield of.name(item), None, item
            continue
        around = of.name(item)
        for one in of.inner.asked(item) or ():
            yield (around, of.inner.name(one)), item, one


def _put(found: list[Any], of: Items[Any, Any], parent: Any, item: Any) -> None:
    """Add an element to the list, inside a copy of its parent, the element that contains it."""
    if of.inner is None:
        found.append(item)
        return
    # Elements of consecutive parents with the same name go into one copy.
    if not found or of.name(found[-1]) != of.name(parent):
        found.append(with_list(parent, of.inner.asked(parent), []))
    of.inner.asked(found[-1]).append(item)  # type: ignore[union-attr] # It was made with a list.


def portions(body: Q, way: Portions[Q, Any]) -> Iterator[Q]:
    """Split `body` into bodies with at most `way.most` elements each."""
    wanted = way.items.asked(body)
    for part, _ in _parts(wanted or (), way.items.inner, way.most):
        yield with_list(body, wanted, part)


def _parts(
    wanted: Sequence[Any], inner: Items[Any, Any] | None, most: int
) -> Iterator[tuple[list[Any], int]]:
    """Split a list into consecutive parts; yield each with its number of innermost elements."""
    if inner is None:
        for start in range(0, len(wanted), most):
            part = list(wanted[start : start + most])
            yield part, len(part)
        return
    part, size = [], 0
    for item in wanted:
        for piece, piece_size in _pieces(item, inner, most):
            if part and size + piece_size > most:
                yield part, size
                part, size = [], 0
            part.append(piece)
            size += piece_size
    if part:
        yield part, size


def _pieces(item: Any, inner: Items[Any, Any], most: int) -> Iterator[tuple[Any, int]]:
    """Yield the item, or copies of it that each have a part of its inner list."""
    own = inner.asked(item)
    parts = _parts(own or (), inner.inner, most)
    _, size = next(parts, (None, 0))
    if not own or next(parts, None) is None:
        yield item, 1 + size
        return
    for part, size in _parts(own, inner.inner, most):
        yield with_list(item, own, part), 1 + size


# -- responses


class Edges(NamedTuple):
    """The first and the last element of a portion, and the inner elements of each, outermost first.

    They are taken before the portion is served, because access checks remove denied items from the
    body.
    """

    first: list[Any]
    last: list[Any]


def edges(body: Q, way: Portions[Q, Any]) -> Edges:
    """Return the edges of a portion, without the innermost elements, which are never divided."""
    found = Edges([], [])
    first: Any = body
    last: Any = body
    of: Items[Any, Any] = way.items
    while of.inner is not None:
        firsts, lasts = of.asked(first), of.asked(last)
        if not firsts or not lasts:
            break
        first, last, of = firsts[0], lasts[-1], of.inner
        found.first.append(first)
        found.last.append(last)
    return found


def join(response: R, more: R, way: Portions[Any, R], before: Edges, after: Edges) -> None:
    """Append `more`, the response to the next portion, which begins at the edge `after`."""
    names = list(zip(before.last, after.first, strict=False))
    _join(response, more, way.items, names)
    if way.also is not None:
        way.also(response, more)


def _join(response: Any, more: Any, of: Items[Any, Any], names: Sequence[tuple[Any, Any]]) -> None:
    """Append the list of answers in `more` to the one in `response`.

    `names` has, for each level, the last name of the first portion and the first name of the next.
    If they are equal, the element was divided, and its two answers are merged.
    """
    found, rest = of.answers(response), of.answers(more)
    if of.inner is not None and names and of.name(names[0][0]) == of.name(names[0][1]):
        name = of.name(names[0][1])
        begun = _position(name, of, found, reversed(range(len(found))[-_NEAR:]))
        goes_on = _position(name, of, rest, range(len(rest))[:_NEAR])
        if begun is not None and goes_on is not None:
            answer = rest[goes_on]
            rest = [one for one in rest if one is not answer]
            # As in Kafka, an error in one of the two answers is the error of the whole element.
            if not of.error(found[begun]) and of.error(answer):
                found[begun] = answer
            elif not of.error(found[begun]):
                _join(found[begun], answer, of.inner, names[1:])
    found += rest


def _position(
    name: Hashable, of: Items[Any, Any], answers: list[Any], near: Iterator[int] | range
) -> int | None:
    return next((index for index in near if of.answered(answers[index]) == name), None)
