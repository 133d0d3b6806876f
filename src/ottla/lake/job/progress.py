"""The progress of a load in offsets, bytes and seconds. Pure: the caller passes the time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.quantities import size_words


class Share(NamedTuple):
    """The part of a load that one task reads."""

    offsets: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a load. Sizes are the planned sizes of tasks."""

    tasks: int
    tasks_done: int
    offsets: int
    offsets_done: int
    size_bytes: int
    bytes_done: int
    elapsed_s: float
    lag_s: float | None  # Age of the oldest record that the table does not have yet.

    @property
    def left_s(self) -> float | None:
        """Return the estimated time left at the pace so far; None if no task is complete."""
        if not self.bytes_done or not self.elapsed_s:
            return None
        return (self.size_bytes - self.bytes_done) * self.elapsed_s / self.bytes_done

    def line(self) -> str:
        """Return the progress as one line."""
        share = self.bytes_done / self.size_bytes if self.size_bytes else 1.0
        words = [f"{share:.0%}"]
        if self.offsets:  # The second stage of a changelog reads no offsets.
            words.append(f"{self.offsets_done:,} of {self.offsets:,} offsets")
        words += [
            f"{size_words(self.bytes_done)} of {size_words(self.size_bytes)}",
            f"{self.tasks_done} of {self.tasks} tasks",
        ]
        if self.bytes_done and self.elapsed_s:
            words.append(f"{size_words(self.bytes_done / self.elapsed_s)}/s")
        if self.left_s is not None and self.tasks_done < self.tasks:
            words.append(f"{brief(self.left_s)} left")
        if self.lag_s is not None:
            words.append(f"{brief(self.lag_s)} behind")
        return " · ".join(words)


OnProgress = Callable[[Progress], None]


def progress_of(
    shares: Sequence[Share], done: int, elapsed_s: float, lag_at_start_s: float | None
) -> Progress:
    """Return the progress of a load whose first `done` tasks are complete.

    Tasks start in order, so the first ones are assumed to be complete. At the end the sums are
    exact.
    """
    return Progress(
        tasks=len(shares),
        tasks_done=done,
        offsets=sum(one.offsets for one in shares),
        offsets_done=sum(one.offsets for one in shares[:done]),
        size_bytes=sum(one.size_bytes for one in shares),
        bytes_done=sum(one.size_bytes for one in shares[:done]),
        elapsed_s=elapsed_s,
        lag_s=None if lag_at_start_s is None else lag_at_start_s + elapsed_s,
    )


def brief(seconds: float) -> str:
    """Return a time span in one or two units: `8 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 and seconds != whole else f"{whole} s"
    for big, small, big_s, small_s in (
        ("min", "s", 60, 1),
        ("h", "min", 3600, 60),
        ("d", "h", 86400, 3600),
    ):
        if whole < big_s * (60 if big_s < 3600 else 24) or big == "d":
            count, rest = divmod(whole, big_s)
            tail = f" {rest // small_s} {small}" if rest // small_s else ""
            return f"{count:,} {big}{tail}"
    raise AssertionError(seconds)
