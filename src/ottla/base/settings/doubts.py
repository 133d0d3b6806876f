"""Finds valid settings whose effect on security is probably not intended. Pure."""

from ottla.base.settings.broker import BrokerSettings
from ottla.base.settings.listeners import without_listener

_AUTHORIZER = "authorizer.class.name"
_SUPER = "super.users"
# Kafka asks such a class for a client's identity; Ottla loads no foreign classes.
_CLASSES = (
    "principal.builder.class",
    "sasl.login.callback.handler.class",
    "ssl.engine.factory.class",
)


def doubts(settings: BrokerSettings, *, has_acls: bool) -> list[str]:
    """Return sentences for the log at startup, with remedies.

    `has_acls` says that the cluster has ACLs.
    """
    return [
        *_of_super_users(settings),
        *_of_the_authorizer(settings, has_acls=has_acls),
        *_of_listeners(settings),
        *(
            f"{name} has no effect: no class of others is loaded; remove it"
            for name in _CLASSES
            if settings.static.get(name)
        ),
    ]


def _of_super_users(settings: BrokerSettings) -> list[str]:
    found = []
    for part in settings.text(_SUPER).split(";"):
        kind, _, name = part.strip().partition(":")
        if part.strip() and kind != "User":
            found.append(
                f"{_SUPER} names {part.strip()}, which no client is: the type of clients is User,"
                f" so write User:{name}"
            )
        elif ",User:" in name.replace(" ", ""):
            found.append(
                f"{_SUPER} names one user, {name}: several have semicolons between them, as"
                " User:alice;User:bob"
            )
    return found


def _of_the_authorizer(settings: BrokerSettings, *, has_acls: bool) -> list[str]:
    if not settings.text(_AUTHORIZER):
        if not settings.text(_SUPER).strip():
            return []
        return [
            f"{_SUPER} has no effect without {_AUTHORIZER}, and every client may do everything: set"
            f" {_AUTHORIZER}=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        ]
    is_open = settings.flag("allow.everyone.if.no.acl.found")
    if has_acls or is_open or settings.text(_SUPER).strip():
        return []
    return [
        "no client may do anything, for there are neither ACLs nor super users: set"
        f" {_SUPER}=User:… and start again, or add the first with `ottla acl add --store …`"
    ]


def _of_listeners(settings: BrokerSettings) -> list[str]:
    # Kafka's files also have settings of its controllers.
    controllers = tuple(
        f"listener.name.{name.lower()}." for name in settings.texts("controller.listener.names")
    )
    return [
        f"{name} has no effect: {why}"
        for name in settings.static
        if not name.startswith(controllers) and (why := without_listener(settings, name))
    ]
