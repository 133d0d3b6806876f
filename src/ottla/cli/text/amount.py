"""Numbers as people write them: 500000, 500k, 2Mi, 10MB/s."""

import click

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def amount(text: str) -> float:
    """The number. Raises click.BadParameter."""
    number = text.strip().lower().removesuffix("/s").removesuffix("b")
    digits = number.rstrip("kmgi")
    try:
        return float(digits) * _UNITS[number[len(digits) :]]
    except (ValueError, KeyError):
        raise click.BadParameter(
            f"{text!r} is no number; write one such as 500000, 500k or 2Mi"
        ) from None


def bytes_per_s(text: str) -> int:
    """A rate of at least one byte, the type of an option. Raises click.BadParameter."""
    found = amount(text)
    if not 1 <= found < 1 << 62:
        raise click.BadParameter(f"{text!r} is no rate; write bytes per second, such as 10M")
    return int(found)
