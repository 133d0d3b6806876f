"""The four numbers of a cluster's partitions in one sentence."""

from collections.abc import Mapping

from ottla.base.quantities import counted


def numbers_sentence(partitions: int, numbers: Mapping[str, int]) -> str:
    """The number of partitions, and the number in each kind of trouble."""
    words = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in numbers.items())
    return f"{counted(partitions, 'partition')}: {words}".replace("min isr", "min ISR").replace(
        "under replicated", "under-replicated"
    )
