"""The parts of a broker that are needed to serve fetches."""

from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.fetch.sessions import FetchSessions
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True)
class FetchParts:
    """The parts that the Fetch handler, the fast path and waiting fetches share."""

    settings: BrokerSettings
    runtime: Runtime
    partitions: Partitions
    sessions: FetchSessions
    new_leaders: NewLeaders
