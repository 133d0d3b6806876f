"""The first page: what is wrong in the cluster, and its brokers."""

import asyncio

from starlette.responses import Response

from ottla.console.visit import MenuEntry, Visit, get, part
from ottla.diagnosis.cluster import broker_answers, health

# How long each broker may take for its share of the answer.
_BROKER_S = 2.0


async def show_overview(visit: Visit) -> Response:
    """Show findings first, then the brokers; the page refreshes itself."""
    found, brokers = await asyncio.gather(
        part(health(visit.admin, _BROKER_S)), part(broker_answers(visit.admin, _BROKER_S))
    )
    silent = [one for one in brokers.value or () if one.error is not None]
    return visit.page("overview.html", health=found, brokers=brokers, silent=silent)


MENU = MenuEntry("Overview", "/", "o")
ROUTES = (get("/", show_overview),)
