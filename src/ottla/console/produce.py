"""The form that writes one record to a topic."""

import base64
import binascii

from starlette.responses import Response

from ottla.base.clock import local_now
from ottla.base.errors import OttlaError, WrongWords
from ottla.console.visit import Problem, Visit, address, get, post, problem_of, whole
from ottla.diagnosis.record_choice import position_of

# How a key or value is written in the form.
WRITTEN = ("text", "base64", "null")


async def show_form(visit: Visit) -> Response:
    """Show the form, after a look at whether the topic exists."""
    await visit.admin.topics.describe(visit.name())
    return _form(visit, None)


async def send(visit: Visit) -> Response:
    """Write the record and show it; or show the form again, with what is wrong."""
    name = visit.name()
    try:
        partition = visit.field("partition")
        await visit.admin.topics.describe(name)
        async with visit.producer() as producer:
            delivery = await producer.send_and_wait(
                name,
                _content(visit, "value"),
                _content(visit, "key"),
                partition=whole(partition, "the partition", 0, 1 << 31) if partition else None,
                timestamp_ms=_time(visit.field("time")),
                headers=_headers(visit.fields.get("headers", "")),
            )
    except OttlaError as error:
        return _form(visit, problem_of(error))
    place = address("/topics/{}/records/{}/{}", name, str(delivery.partition),
                    str(delivery.base_offset))  # fmt: skip
    written = f"Written to {name}-{delivery.partition} at offset {delivery.base_offset}."
    return visit.go(place, written)


def _form(visit: Visit, problem: Problem | None) -> Response:
    status = problem.status if problem else 200
    return visit.page(
        "produce.html", status=status, name=visit.name(), problem=problem, written=WRITTEN
    )


def _content(visit: Visit, name: str) -> bytes | None:
    """Return the bytes of a key or value. Browsers send line ends as CR LF; a form means LF."""
    kind = visit.field(f"{name}_kind") or WRITTEN[0]
    text = visit.fields.get(name, "").replace("\r\n", "\n")
    if kind == "null":
        return None
    if kind == "base64":
        try:
            return base64.b64decode(text.strip(), validate=True)
        except binascii.Error:
            raise WrongWords(f"the {name} is no base64; choose text, or correct it") from None
    return text.encode("utf-8", "surrogatepass")


def _headers(text: str) -> list[tuple[str, bytes | None]]:
    """Parse lines of `name: value`. Raises WrongWords."""
    found: list[tuple[str, bytes | None]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise WrongWords("a header is a line `name: value`; correct the headers")
        found.append((name.strip(), value.strip().encode("utf-8", "surrogatepass")))
    return found


def _time(text: str) -> int | None:
    """Return a time in ms; None for now."""
    if not text:
        return None
    position = position_of(text, local_now())
    if position.kind != "time":
        raise WrongWords(f"{text!r} is no time; write 2024-01-31T09:00:00Z or 10m (ago)")
    return position.number


ROUTES = (
    get("/topics/{name}/produce", show_form),
    post("/topics/{name}/produce", send),
)
