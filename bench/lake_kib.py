"""`bench.lake` over 1 M random records of 1 KiB."""

from bench.figures import Figure, Scale
from bench.lake import measure_records


def measure(scale: Scale) -> list[Figure]:
    return measure_records(scale, scale.pick(1_000_000, 40_000), 1024)
