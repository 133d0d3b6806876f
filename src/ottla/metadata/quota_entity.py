"""The entity that a quota is for, and its node in the store, at Kafka's path in ZooKeeper."""

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv6Address, ip_address
from urllib.parse import quote, unquote

from ottla.base.errors import ErrorCode, OttlaError


class Default(Enum):
    """The type of DEFAULT."""

    DEFAULT = "<default>"


# Stands for all entities without a quota of their own.
DEFAULT = Default.DEFAULT
Name = str | Default

CONFIG_USERS = "/config/users"
CONFIG_CLIENTS = "/config/clients"
CONFIG_IPS = "/config/ips"
QUOTA_ROOTS = (CONFIG_USERS, CONFIG_CLIENTS, CONFIG_IPS)

_CLIENTS = "clients"


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """A user, a client id, a user with a client id, or an address; each by name or DEFAULT."""

    # Invariant: at least one of the three is set; if `ip` is set, the other two are None.
    user: Name | None = None
    client_id: Name | None = None
    ip: Name | None = None

    def __str__(self) -> str:
        return ", ".join(
            f"{kind} {_shown(name)}"
            for kind, name in (
                ("user", self.user),
                ("client-id", self.client_id),
                ("ip", self.ip),
            )
            if name is not None
        )


def quota_path(entity: QuotaEntity) -> str:
    """The node that holds the quotas of an entity."""
    if entity.ip is not None:
        return f"{CONFIG_IPS}/{_to_node(entity.ip)}"
    if entity.user is None:
        assert entity.client_id is not None
        return f"{CONFIG_CLIENTS}/{_to_node(entity.client_id)}"
    path = f"{CONFIG_USERS}/{_to_node(entity.user)}"
    if entity.client_id is None:
        return path
    return f"{path}/{_CLIENTS}/{_to_node(entity.client_id)}"


def quota_entity(path: str) -> QuotaEntity | None:
    """The entity whose quotas the node at `path` contains; None if that is not a quota node."""
    for root in QUOTA_ROOTS:
        names = path.removeprefix(f"{root}/").split("/")
        if path == root or not path.startswith(f"{root}/"):
            continue
        if root == CONFIG_IPS:
            return QuotaEntity(ip=_to_name(names[0])) if len(names) == 1 else None
        if root == CONFIG_CLIENTS:
            return QuotaEntity(client_id=_to_name(names[0])) if len(names) == 1 else None
        if len(names) == 1:
            return QuotaEntity(user=_to_name(names[0]))
        if len(names) == 3 and names[1] == _CLIENTS:
            return QuotaEntity(user=_to_name(names[0]), client_id=_to_name(names[2]))
    return None


def parse_entity(parts: list[tuple[str, str | None]]) -> QuotaEntity:
    """Convert the protocol's (type, name) pairs of an entity; a name of None means DEFAULT.

    Raises OttlaError(INVALID_REQUEST) if the pairs are not an entity that can have quotas.
    """
    names: dict[str, Name] = {}
    for kind, name in parts:
        if kind not in ("user", "client-id", "ip"):
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Unhandled client quota entity type: {kind[:100]}; there are user, client-id, ip",
            )
        if kind in names:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Client quota entity cannot contain duplicate entity type {kind}; name it once",
            )
        if name == "":
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Invalid empty {kind} entity name; null stands for the default",
            )
        names[kind] = DEFAULT if name is None else name
    if not names:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid empty client quota entity; name a user, a client-id or an ip",
        )
    if "ip" in names and len(names) > 1:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid client quota entity: an ip cannot be combined with a user or client-id",
        )
    ip = names.get("ip")
    if isinstance(ip, str) and plain_address(ip) is None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{ip[:100]} is not a valid IP; write an address such as 192.0.2.7 or 2001:db8::7",
        )
    return QuotaEntity(names.get("user"), names.get("client-id"), ip)


def plain_address(text: str) -> str | None:
    """An IP address in the spelling of sockets; None if `text` is not an IP address."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if "%" in bare:
        return None
    try:
        address = ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def entity_parts(entity: QuotaEntity) -> list[tuple[str, str | None]]:
    """The (type, name) pairs of an entity, as `parse_entity` reads them."""
    named = (("user", entity.user), ("client-id", entity.client_id), ("ip", entity.ip))
    return [
        (kind, None if name is DEFAULT else str(name)) for kind, name in named if name is not None
    ]


def _to_node(name: Name) -> str:
    """A name as a node name; all but letters, digits and `._-` are escaped, as in Kafka."""
    if isinstance(name, Default):
        return name.value
    return quote(name, safe="").replace("~", "%7E")


def _to_name(node: str) -> Name:
    return DEFAULT if node == DEFAULT.value else unquote(node)


def _shown(name: Name) -> str:
    return name.value if isinstance(name, Default) else name
