"""Resources with settings, as people name them: a topic, a broker by id, all brokers, a group."""

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.declaration.setting import Setting
from ottla.client.admin import Admin
from ottla.client.admin.configs import ResourceKind

KINDS = {
    "topic": ResourceKind.TOPIC,
    "broker": ResourceKind.BROKER,
    "group": ResourceKind.GROUP,
}
TABLES: dict[str, dict[str, Setting]] = {
    "topic": TOPIC_SETTINGS,
    "broker": BROKER_SETTINGS,
    "group": GROUP_SETTINGS,
}
# People's name for the settings of all brokers; the protocol's is "".
_ALL = "all"

kind_argument = click.argument("kind", type=click.Choice(list(KINDS)))
name_argument = click.argument("name")


async def require(admin: Admin, kind: str, name: str) -> None:
    """Raise if the topic or broker does not exist, naming those that do."""
    if kind == "topic":
        await admin.topics.describe_all([name])
    elif kind == "broker" and name != _ALL:
        ids = [str(broker_id) for broker_id in await admin.cluster.brokers()]
        if name not in ids:
            raise OttlaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"there is no broker {name!r}; there are {', '.join(ids)} (and `{_ALL}`, for what "
                "is set for all of them)",
            )


def resource(kind: str, name: str) -> str:
    """The resource's name in the protocol."""
    return "" if kind == "broker" and name == _ALL else name
