"""The messages of the walk's network. Each may arrive late, twice or never."""

from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.metadata.image import PartitionImage
from ottla.replica.isr import IsrChange, Rejection
from verify.walk.log import Record


class FollowerFetch(NamedTuple):
    """A follower asks its leader."""

    target: BrokerId
    source: BrokerId
    broker_epoch: int
    nonce: int
    offset: int
    last_epoch: int
    leader_epoch: int


class FetchedRecords(NamedTuple):
    """The leader's answer, perhaps empty."""

    target: BrokerId
    nonce: int
    leader_epoch: int
    offset: int
    records: tuple[Record, ...]
    high_watermark: int
    log_start: int


class Parting(NamedTuple):
    """The leader's answer where the logs part."""

    target: BrokerId
    nonce: int
    leader_epoch: int
    epoch: int
    end: int


class Refused(NamedTuple):
    """The leader's answer that is an error."""

    target: BrokerId
    nonce: int
    leader_epoch: int
    error: ErrorCode
    log_start: int


class State(NamedTuple):
    """A LeaderAndIsr request of the controller, for one registration of a broker."""

    target: BrokerId
    broker_epoch: int
    controller_epoch: int
    image: PartitionImage


class WriteIsr(NamedTuple):
    """A leader asks the store."""

    source: BrokerId
    broker_epoch: int
    controller_epoch: int
    change: IsrChange


class WriteOutcome(NamedTuple):
    """The result of a write: its version, a rejection, or unknown (both None)."""

    target: BrokerId
    broker_epoch: int
    change: IsrChange
    version: int | None
    rejection: Rejection | None


class ReadRequest(NamedTuple):
    """A leader reads the state in the store."""

    source: BrokerId
    broker_epoch: int


class ReadAnswer(NamedTuple):
    """What the store held when it was read."""

    target: BrokerId
    broker_epoch: int
    image: PartitionImage


class WriteState(NamedTuple):
    """A controller asks the store."""

    controller_epoch: int
    after: PartitionImage
    # Registrations after an unclean stop that the change has taken into account.
    cleared: tuple[tuple[BrokerId, int], ...]


Message = (
    FollowerFetch
    | FetchedRecords
    | Parting
    | Refused
    | State
    | WriteIsr
    | WriteOutcome
    | ReadRequest
    | ReadAnswer
    | WriteState
)
