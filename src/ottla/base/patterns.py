"""Regular expressions from clients, run by RE2 in time linear in the text."""

from typing import Any, Final

from ottla.base.errors import ErrorCode, OttlaError, shortened

# The most memory of one compiled pattern and its cache. RE2's own default is 8 MiB.
PATTERN_BYTES_MAX: Final = 1 << 18
# Repetitions turn a short pattern into a large program, which takes time to reject.
PATTERN_CHARACTERS_MAX: Final = 2_000


def compiled(pattern: str, name: str) -> Any:
    """Compile a pattern with RE2; its groups capture nothing. `name` is the pattern's field.

    With captures a match would be quadratic, because RE2 searches again for the bounds of each
    group. Raises OttlaError(INVALID_REGULAR_EXPRESSION).
    """
    # Imported on first use, which is rare.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    options.never_capture = True
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise OttlaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"{name} has {len(pattern):,} characters, and may have {PATTERN_CHARACTERS_MAX:,}:"
            " use several patterns, or names",
        )
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise OttlaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"{name} `{shortened(pattern)}` is no regular expression of RE2: {error}",
        ) from error
