"""Regular expressions that clients send: read by RE2, in time that is linear in what they match."""

from typing import Final

# What one pattern, and what RE2 remembers of it, may take. RE2's own default is 8 MiB.
PATTERN_BYTES_MAX: Final = 1 << 20
