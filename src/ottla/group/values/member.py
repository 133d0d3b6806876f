"""A member of a group."""

from dataclasses import dataclass
from typing import NamedTuple

from ottla.group.values.notes import Who

# A request that waits for its answer. The core hands it back in a Reply and never looks inside.
Ticket = object


class OfferedProtocol(NamedTuple):
    """An assignor the member can work with, and its metadata for the leader."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class Member:
    """A member as the coordinator knows it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    # In the member's order of preference.
    protocols: tuple[OfferedProtocol, ...]
    assignment: bytes = b""
    # Soft state: the waiting requests. A restart loses them, and members send them again.
    joining: Ticket | None = None
    syncing: Ticket | None = None
    # The member has not finished its first join, so it cannot send heartbeats yet.
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the member waits for an answer, so that it need not send heartbeats."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    @property
    def who(self) -> Who:
        """The member as answers to administrators name it."""
        return Who(self.member_id, self.client_id, self.client_host, self.group_instance_id)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for the leader under `protocol_name`, empty if it does not offer that."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def votes_for(self, candidates: set[str]) -> str:
        """The candidate that the member prefers."""
        return next(name for name, _ in self.protocols if name in candidates)
