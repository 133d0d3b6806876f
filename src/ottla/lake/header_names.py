"""Names of headers as text: in a log they are bytes, mostly UTF-8, and a column has text.

A name in UTF-8 is that text. Any other name is U+FFFD, `hex:` and its bytes in hexadecimal digits;
so is a name in UTF-8 that begins like that. No two names have the same text.
"""

_MARK = "\ufffdhex:"


def header_name_text(name: bytes) -> str:
    """The name as it stands in the column."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return _MARK + name.hex()
    return _MARK + name.hex() if text.startswith(_MARK) else text


def header_name_bytes(text: str) -> bytes:
    """The name as it was in the log: the inverse of `header_name_text`."""
    return bytes.fromhex(text.removeprefix(_MARK)) if text.startswith(_MARK) else text.encode()
