"""The authorization part of this broker: the ACLs, and the check before each request."""

from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.settings import BrokerSettings
from ottla.broker.access.acls import Acls, new_authorizer
from ottla.broker.access.gate import Gate
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import Store


@dataclass(frozen=True, slots=True)
class AccessStatus:
    """Reports whether ACLs are in use, and how many there are."""

    has_authorizer: bool
    acls: int


class AccessPart(BrokerPart):
    """Authorization. All attributes are None if the settings name no authorizer."""

    def __init__(
        self, settings: BrokerSettings, clock: Clock, view: ClusterView, store: Store
    ) -> None:
        self.authorizer = authorizer = new_authorizer(settings)
        self.acls = None if authorizer is None else Acls(store, clock, authorizer)
        self.gate = None if authorizer is None else Gate(authorizer, view, settings)

    def status(self) -> AccessStatus:
        rules = () if self.authorizer is None else self.authorizer.rules
        return AccessStatus(self.authorizer is not None, sum(1 for _ in rules))
