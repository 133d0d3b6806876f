"""Converts header names, which are bytes in a log, to text for a column and back.

A name in valid UTF-8 becomes that text. Any other name becomes U+FFFD, `hex:` and its bytes in
hexadecimal digits; so does a UTF-8 name that begins in the same way. So different names always have
different texts.
"""

_MARK = "\ufffdhex:"


def header_name_text(name: bytes) -> str:
    """Return the name as the column has it."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return _MARK + name.hex()
    return _MARK + name.hex() if text.startswith(_MARK) else text


def header_name_bytes(text: str) -> bytes:
    """Return the name as the log had it: the inverse of `header_name_text`."""
    return bytes.fromhex(text.removeprefix(_MARK)) if text.startswith(_MARK) else text.encode()
