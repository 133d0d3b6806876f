"""Reads a certificate (X.509, in DER): its subject and its validity.

The subject is written as Kafka prints it, that is, as Java's X500Principal does by RFC 2253: the
last part first, names of nine attributes, and the bytes of all others in hexadecimal.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final, NamedTuple

SEQUENCE, SET, OID = 0x30, 0x31, 0x06


class Element(NamedTuple):
    """One DER element."""

    tag: int
    # The element with its tag and length, and without them.
    whole: bytes
    content: bytes


def expect(element: Element, tag: int) -> bytes:
    """Return the content of an element with that tag. Raises ValueError."""
    if element.tag != tag:
        raise ValueError(f"no certificate in DER: tag {element.tag} in place of {tag}")
    return element.content


def elements(data: bytes) -> Iterator[Element]:
    """Return consecutive elements. Raises ValueError, IndexError."""
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


_VERSION, _EXTENSIONS = 0xA0, 0xA3
_OCTETS = 0x04
_UTC_TIME = 0x17
# Alternative names of the subject, and two kinds of them: names of hosts and addresses.
_ALTERNATIVES: Final = "2.5.29.17"
_DNS, _ADDRESS = 0x82, 0x87
_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# Kinds of strings, and how their characters are encoded.
_STRINGS: Final = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1B: "latin-1",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')


class Certificate(NamedTuple):
    """The fields read from a certificate."""

    subject: str
    not_before: datetime
    not_after: datetime


class CertificateNames(NamedTuple):
    """The names in a certificate."""

    subject: str
    issuer: str
    # The host names and addresses for which it is valid.
    hosts: tuple[str, ...]


def read_certificate(der: bytes) -> Certificate:
    """Read a certificate. Raises ValueError if `der` is not one."""
    try:
        parts = _parts(der)
        # Serial number, algorithm, issuer, validity, subject.
        begin, end = elements(expect(parts[3], SEQUENCE))
        return Certificate(_subject(expect(parts[4], SEQUENCE)), _time(begin), _time(end))
    except (IndexError, StopIteration, UnicodeDecodeError) as error:
        raise ValueError("no certificate in DER") from error


def read_names(der: bytes) -> CertificateNames:
    """Read a certificate's names. Raises ValueError if `der` is not a certificate."""
    try:
        parts = _parts(der)
        issuer, subject = (_subject(expect(parts[index], SEQUENCE)) for index in (2, 4))
        return CertificateNames(subject, issuer, tuple(_hosts(parts)))
    except (IndexError, StopIteration, UnicodeDecodeError) as error:
        raise ValueError("no certificate in DER") from error


def _parts(der: bytes) -> list[Element]:
    signed = next(elements(expect(next(elements(der)), SEQUENCE)))
    return [part for part in elements(expect(signed, SEQUENCE)) if part.tag != _VERSION]


def _hosts(parts: list[Element]) -> list[str]:
    found = []
    for extensions in (part for part in parts if part.tag == _EXTENSIONS):
        for extension in elements(expect(next(elements(extensions.content)), SEQUENCE)):
            # An optional field between them says whether the extension is critical.
            kind, *_, value = elements(expect(extension, SEQUENCE))
            if _oid(expect(kind, OID)) != _ALTERNATIVES:
                continue
            for name in elements(expect(next(elements(expect(value, _OCTETS))), SEQUENCE)):
                if name.tag == _DNS:
                    found.append(name.content.decode("ascii"))
                elif name.tag == _ADDRESS and len(name.content) in (4, 16):
                    found.append(str(ip_address(name.content)))
    return found


def _subject(name: bytes) -> str:
    """Return the subject's parts separated by commas, the last first.

    Attributes of the same part are joined by plus signs.
    """
    parts = []
    for part in elements(name):
        attributes = (_attribute(each) for each in elements(expect(part, SET)))
        parts.append("+".join(attributes))
    return ",".join(reversed(parts))


def _attribute(element: Element) -> str:
    kind, value = elements(expect(element, SEQUENCE))
    oid = _oid(expect(kind, OID))
    encoding = _STRINGS.get(value.tag)
    name = _NAMES.get(oid)
    if name is None or encoding is None:
        return f"{name or oid}=#{value.whole.hex()}"
    return f"{name}={_escaped(value.content.decode(encoding))}"


def _escaped(text: str) -> str:
    shown = []
    begin, end = len(text) - len(text.lstrip(" \n")), len(text.rstrip(" \n"))
    for index, character in enumerate(text):
        if character == "\0":
            shown.append("\\00")
        elif character in _ESCAPED or not begin <= index < end:
            shown.append(f"\\{character}")
        else:
            shown.append(character)
    return "".join(shown)


def _oid(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _time(element: Element) -> datetime:
    text = element.content.decode("ascii")
    if element.tag == _UTC_TIME:
        # Two digits of the year: from 1950 to 2049.
        text = ("20" if text < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
