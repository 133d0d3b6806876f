"""An ISR change proposed by the leader: the new state, and the conditions the store must meet.

ISR and ELR of the new state (KIP-966) are decided in `metadata.in_sync`, which the controller uses
too.
"""

from dataclasses import dataclass
from enum import Enum

from ottla.base.ids import BrokerId
from ottla.metadata.image import PartitionImage
from ottla.metadata.in_sync import with_members, without_members


@dataclass(frozen=True, slots=True)
class IsrChange:
    """One compare-and-set in the store, applied completely or not at all (R-5).

    `after` replaces the stored state if all of this holds: the stored version is `after.version`;
    each broker in `joining` is alive and registered with the given broker epoch; the controller
    epoch and the topic's id are those that this broker knows. The nonce identifies the writer
    (S15).
    """

    after: PartitionImage
    joining: tuple[tuple[BrokerId, int], ...]

    @property
    def nonce(self) -> int:
        return self.after.nonce

    def committed(self, version: int) -> PartitionImage:
        """The state as stored, at `version`, after the change was made."""
        return self.after._replace(version=version)


class Rejection(Enum):
    """Why the store rejected a change. After a rejection it is certain that it was not made."""

    # The partition's state has another version than expected: the controller changed it.
    OUTDATED = "the state has another version"
    # A broker that was to join is dead, or has restarted since it fetched.
    INELIGIBLE = "a joining broker is not alive at that epoch"
    # The controller epoch has changed; the shell reads the new one.
    CONTROLLER_MOVED = "the controller has changed"


def isr_change(
    image: PartitionImage,
    isr: tuple[BrokerId, ...],
    epochs: tuple[tuple[BrokerId, int], ...],
    min_isr: int,
    nonce: int,
) -> IsrChange:
    """Return the change that replaces the committed ISR by `isr`.

    `epochs` are the broker epochs of the joining brokers. If the ISR does not change, the write
    only raises the version, and clears an ELR that became obsolete when `min.insync.replicas` was
    lowered. It always clears the last known ELR, since the partition has a leader.
    """
    leaving = tuple(broker for broker in image.isr if broker not in isr)
    after = without_members(image, leaving, min_isr)
    after = with_members(after, tuple(b for b in isr if b not in image.isr), min_isr)
    assert image.leader in after.isr
    return IsrChange(after._replace(nonce=nonce, last_known_elr=()), epochs)
