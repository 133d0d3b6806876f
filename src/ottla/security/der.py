"""Elements of ASN.1 in DER, as far as a certificate is read."""

from collections.abc import Iterator
from typing import NamedTuple

SEQUENCE, SET, OID = 0x30, 0x31, 0x06


class Element(NamedTuple):
    """One element."""

    tag: int
    # The element with its tag and length, and without them.
    whole: bytes
    content: bytes


def expect(element: Element, tag: int) -> bytes:
    """The content of an element of that tag. Raises ValueError."""
    if element.tag != tag:
        raise ValueError(f"no certificate in DER: tag {element.tag} in place of {tag}")
    return element.content


def elements(data: bytes) -> Iterator[Element]:
    """The elements that follow each other. Raises ValueError, IndexError."""
    position = 0
    while position < len(data):
        tag, length = data[position], data[position + 1]
        begin = position + 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[begin : begin + count])
            begin += count
        end = begin + length
        if end > len(data):
            raise ValueError("no certificate in DER: it is cut off")
        yield Element(tag, data[position:end], data[begin:end])
        position = end
