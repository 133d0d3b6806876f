"""What is read of a certificate, and mapping rules for the names in it."""

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import NameAttribute, RelativeDistinguishedName
from cryptography.x509.oid import NameOID

from ottla.base.errors import OttlaError
from ottla.security.certificate import read_certificate
from ottla.security.mapping_rules import MappingRules

BEGIN = datetime(2049, 12, 31, 23, 59, 58, tzinfo=UTC)
END = datetime(2051, 1, 2, 3, 4, 5, tzinfo=UTC)


def certificate(*parts, begin=BEGIN, end=END):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([p if isinstance(p, RelativeDistinguishedName) else part(p) for p in parts])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([NameAttribute(NameOID.COMMON_NAME, "issuer")]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.DER)


def part(*attributes):
    return RelativeDistinguishedName([NameAttribute(oid, text) for oid, text in attributes])


def subject(*parts):
    return read_certificate(certificate(*[part(each) for each in parts])).subject


def test_the_last_part_of_a_name_comes_first():
    """RFC 2253, as Java prints it and Kafka's ACLs name it."""
    named = subject(
        (NameOID.COUNTRY_NAME, "AT"),
        (NameOID.ORGANIZATION_NAME, "Ottla"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Log"),
        (NameOID.COMMON_NAME, "alice"),
    )
    assert named == "CN=alice,OU=Log,O=Ottla,C=AT"


def test_characters_with_a_meaning_are_escaped():
    """Commas, pluses, quotes, and blanks at both ends."""
    assert subject((NameOID.COMMON_NAME, ' a,b+c"d\\e;f ')) == 'CN=\\ a\\,b\\+c\\"d\\\\e\\;f\\ '


def test_an_attribute_without_a_name_in_the_standard_is_shown_by_its_bytes():
    """Java prints an e-mail address so; ACLs of Kafka name such principals."""
    assert subject((NameOID.EMAIL_ADDRESS, "a@b")) == "1.2.840.113549.1.9.1=#1603614062"


def test_attributes_of_one_part_stand_between_pluses():
    """A part of a name may have several."""
    several = part((NameOID.COMMON_NAME, "a"), (NameOID.USER_ID, "7"))
    assert read_certificate(certificate(several)).subject in ("CN=a+UID=7", "UID=7+CN=a")


def test_times_of_both_kinds_are_read():
    """Years up to 2049 have two digits, later ones four."""
    read = read_certificate(certificate(part((NameOID.COMMON_NAME, "a"))))
    assert (read.not_before, read.not_after) == (BEGIN, END)


@pytest.mark.parametrize("cut", [0, 1, 2, 40, 100])
def test_a_damaged_certificate_is_a_value_error(cut):
    """Never an error of another kind."""
    whole = certificate(part((NameOID.COMMON_NAME, "a")))
    with pytest.raises(ValueError, match="no certificate"):
        read_certificate(whole[:cut])


RULES = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L, RULE:^.*[Cc]N=([a-zA-Z0-9.]*).*$/$1/U,DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        (RULES, "CN=Duke,OU=ServiceUsers,O=Org", "Duke"),
        (RULES, "CN=Duke,OU=Admins,O=Org", "duke@admins"),
        (RULES, "cN=duke,X=1", "DUKE"),
        (RULES, "OU=Log", "OU=Log"),
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("", "CN=a,O=b", "CN=a,O=b"),
        (r"RULE:^CN=(.*)$/user\/$1/", "CN=a", r"user\/a"),
        (r"RULE:^CN=(.*)$/$1$7/", "CN=a", "a$7"),
        (r"RULE:CN/x/", "CN=a", None),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_decides(rules, name, mapped):
    """As KIP-371 has it; without a match there is no principal."""
    assert MappingRules(rules).name(name) == mapped


@pytest.mark.parametrize("rules", ["RULE:a/b", "RULE:a/b/X", "rule", "DEFAULTS", "RULE:(a/b/"])
def test_rules_that_cannot_be_read_are_refused_with_their_form(rules):
    """At start, not at the first client."""
    with pytest.raises(OttlaError, match=r"ssl\.principal\.mapping\.rules"):
        MappingRules(rules)
