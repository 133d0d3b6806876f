"""The one exception of the walk."""


class Violation(Exception):
    """An invariant does not hold: records were lost, doubled or shown too early."""
