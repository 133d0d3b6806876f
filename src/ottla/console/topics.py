"""The list of topics, one topic's page, and the form that creates one."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import Admin
from ottla.client.connection.cluster import connections_of
from ottla.client.connection.view import NO_LEADER, PartitionDescription, TopicDescription
from ottla.console.visit import MenuEntry, Visit, address, get, part, post, problem_of, whole
from ottla.diagnosis.consequences import after_creation, after_growth, notes
from ottla.diagnosis.partitions import TopicSize, topic_sizes
from ottla.diagnosis.records import bounds
from ottla.operations.topics import create_topic

_ROWS = 50
_PARTITION_ROWS = 100
_BROKER_S = 2.0


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in the list. `wrong` are its partitions that are offline or under-replicated."""

    name: str
    is_internal: bool
    partitions: int
    replicas: int
    wrong: int


@dataclass(frozen=True, slots=True)
class TopicList:
    """A page of the list: its rows, and how many topics there are and match the filter."""

    rows: tuple[TopicRow, ...]
    total: int
    matching: int


_ORDERS: Mapping[str, Callable[[TopicRow], Any]] = {
    "name": lambda row: row.name,
    "partitions": lambda row: (-row.partitions, row.name),
    "replicas": lambda row: (-row.replicas, row.name),
    "wrong": lambda row: (-row.wrong, row.name),
}


def topic_list(
    views: Iterable[TopicDescription], text: str, order: str, start: int, *, internal: bool
) -> TopicList:
    """Return a page of the topics whose names contain `text`, from number `start` on."""
    rows = [_row(view) for view in views if internal or not view.is_internal]
    found = sorted(
        (row for row in rows if text.lower() in row.name.lower()),
        key=_ORDERS.get(order, _ORDERS["name"]),
    )
    return TopicList(tuple(found[start : start + _ROWS]), len(rows), len(found))


def _row(view: TopicDescription) -> TopicRow:
    return TopicRow(
        view.name,
        view.is_internal,
        len(view.partitions),
        max((len(one.replicas) for one in view.partitions), default=0),
        sum(one.leader == NO_LEADER or len(one.isr) < len(one.replicas) for one in view.partitions),
    )


async def show_topics(visit: Visit) -> Response:
    """Show a page of the topics, filtered and sorted."""
    text, order = visit.query("filter"), visit.query("sort", "name")
    internal, start = visit.query("internal") == "yes", visit.number("start", 0)
    views = await visit.admin.topics.all(internal=True)
    found = topic_list(views, text, order, start, internal=internal)
    # Sizes are asked of the brokers only for the visible rows.
    sizes = await part(_sizes(visit.admin, found.rows), _BROKER_S)

    def here(**changes: object) -> str:
        given = {"filter": text, "sort": order, "internal": "yes" if internal else ""}
        return address("/topics", **{**given, **changes})

    return visit.page(
        "topics.html",
        found=found,
        sizes=sizes,
        filter=text,
        order=order,
        internal=internal,
        start=start,
        step=_ROWS,
        here=here,
    )


async def _sizes(admin: Admin, rows: Iterable[TopicRow]) -> dict[str, TopicSize]:
    names = [row.name for row in rows]
    return {one.name: one for one in await topic_sizes(admin, names)} if names else {}


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition with its log's bounds; None and an `error` if its leader sent none."""

    view: PartitionDescription
    start_offset: int | None
    end_offset: int | None
    error: str


async def partition_rows(
    admin: Admin, view: TopicDescription, first: int = 0
) -> tuple[PartitionRow, ...]:
    """Return a page of the partitions of a topic, from number `first` on."""
    shown = view.partitions[first : first + _PARTITION_ROWS]
    names = {one.partition: TopicPartition(view.name, one.partition) for one in shown}
    starts, ends, failed = await bounds(connections_of(admin), names.values(), _BROKER_S)
    return tuple(
        PartitionRow(one, starts.get(name), ends.get(name), _sentence(failed.get(name)))
        for one in shown
        for name in [names[one.partition]]
    )


def _sentence(error: OttlaError | None) -> str:
    return error.message.partition("; ")[0] if error is not None else ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a topic's settings mean for its records, in sentences."""

    sentence: str
    notes: tuple[str, ...]


async def meaning(admin: Admin, view: TopicDescription) -> Meaning:
    """Explain a topic's settings together; a broker that hides some leaves sentences out."""
    entries = await admin.configs.describe("topic", view.name)
    values = {name: entry.value for name, entry in entries.items()}
    replicas = len(view.partitions[0].replicas)
    sentence = after_creation(len(view.partitions), replicas, values)
    return Meaning(sentence, tuple(notes(replicas, values)))


async def show_topic(visit: Visit) -> Response:
    """Show what a topic's settings mean, and its partitions."""
    view = await visit.admin.topics.describe(visit.name())
    first = visit.number("first", 0)
    explained, partitions = await asyncio.gather(
        part(meaning(visit.admin, view)), part(partition_rows(visit.admin, view, first))
    )
    return visit.page(
        "topic.html",
        topic=view,
        explained=explained,
        partitions=partitions,
        first=first,
        step=_PARTITION_ROWS,
    )


async def add_partitions(visit: Visit) -> Response:
    """Raise the number of a topic's partitions."""
    name = visit.name()
    total = whole(visit.field("partitions"), "the number of partitions", 0, 1 << 31)
    before = await visit.admin.topics.describe(name)
    await visit.admin.topics.create_partitions(name, total)
    return visit.go(address("/topics/{}", name), after_growth(name, len(before.partitions), total))


async def show_new_topic(visit: Visit) -> Response:
    """Show the form that creates a topic."""
    return visit.page("new_topic.html", problem=None)


async def create(visit: Visit) -> Response:
    """Create a topic, and show it; or show the form again, with what is wrong."""
    name = visit.field("name")
    try:
        done = await create_topic(
            visit.admin,
            name,
            whole(visit.field("partitions"), "the number of partitions", 0, 1 << 31) or None,
            whole(visit.field("replicas"), "the number of replicas", 0, 1 << 15) or None,
            _assignments(visit.field("settings")),
        )
    except OttlaError as error:
        problem = problem_of(error)
        return visit.page("new_topic.html", status=problem.status, problem=problem)
    sentence = after_creation(len(done.view.partitions), done.replication_factor, done.values)
    return visit.go(address("/topics/{}", name), f"Created {name}: {sentence}", *done.notes)


def _assignments(text: str) -> dict[str, str]:
    """Parse lines of NAME=VALUE."""
    lines = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in lines}


MENU = MenuEntry("Topics", "/topics", "t")
ROUTES = (
    get("/topics", show_topics),
    get("/new-topic", show_new_topic),
    post("/new-topic", create),
    get("/topics/{name}", show_topic),
    post("/topics/{name}/partitions", add_partitions),
)
