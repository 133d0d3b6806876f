"""What a start says of a certificate that clients may not accept."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ottla.network.tls.doubts import certificate_doubts
from ottla.network.tls.material import Material
from ottla.operations.certificates import Issued, issue, new_authority

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ROOT = new_authority("root", NOW)


def pem(issued):
    return issued.certificate.public_bytes(Encoding.PEM)


def material(*chain, trusted=(ROOT,)):
    return Material(
        chain[0].pem + b"".join(map(pem, chain[1:])),
        trusted="".join(pem(each).decode() for each in trusted),
    )


def intermediate(root=ROOT):
    """An authority that the root signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "between")]))
        .issuer_name(root.certificate.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=900))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(root.key, hashes.SHA256())
    )
    return Issued(made, key)


def doubts(held, hosts=("kafka.example",), now=NOW, public=()):
    return certificate_doubts(held, hosts, public, now)


@pytest.mark.parametrize(
    ("names", "host"),
    [
        (["kafka.example"], "kafka.example"),
        (["other.example", "Kafka.Example"], "kafka.example"),
        (["*.example"], "kafka.example"),
        (["10.0.0.7"], "10.0.0.7"),
        (["::1"], "0:0:0:0:0:0:0:1"),
    ],
)
def test_a_certificate_for_the_host_is_in_order(names, host):
    """By a name, by a wildcard for its first part, or by an address."""
    assert doubts(material(issue(ROOT, "b", NOW, hosts=names)), [host]) == []


@pytest.mark.parametrize(
    ("names", "host"),
    [
        (["other.example"], "kafka.example"),
        (["*.example"], "a.kafka.example"),
        (["*.example"], "example"),
        (["10.0.0.7"], "10.0.0.70"),
    ],
)
def test_a_certificate_for_another_host_is_named_with_the_remedy(names, host):
    """Both names are in the sentence."""
    (found,) = doubts(material(issue(ROOT, "b", NOW, hosts=names)), [host])
    assert f"CN=b is for {names[0]}, and clients connect to {host}" in found
    assert "subject alternative names, or set advertised.listeners" in found


def test_a_certificate_without_names_is_for_no_host():
    """Its common name does not count any more."""
    (found,) = doubts(material(issue(ROOT, "kafka.example", NOW)))
    assert "names no host" in found


def test_nothing_is_said_of_names_where_the_host_is_not_known():
    """A listener on every interface that advertises nothing."""
    assert doubts(material(issue(ROOT, "b", NOW, hosts=["x"])), []) == []


@pytest.mark.parametrize(("days", "said"), [(31, False), (29, True), (1, True)])
def test_an_end_within_thirty_days_is_said(days, said):
    """An expired one is an error elsewhere."""
    held = material(issue(ROOT, "b", NOW, hosts=["kafka.example"], days=days))
    found = doubts(held)
    assert [f"in {days} days" in each for each in found] == [True] * said
    assert doubts(held, now=NOW + timedelta(days=days)) == []


def test_a_missing_intermediate_is_named():
    """Clients have the root, and cannot build the chain."""
    between = intermediate()
    own = issue(between, "b", NOW, hosts=["kafka.example"])
    (found,) = doubts(material(own))
    assert "the certificate of CN=between, which signed it, is neither there nor in" in found
    (found,) = doubts(material(own, trusted=[ROOT, between]))
    assert "CN=between, which signed it, is only in the trust store of this broker" in found
    (found,) = doubts(material(own, trusted=[]))
    assert "put the certificates between behind the own one in ssl.keystore.location" in found


def test_a_chain_up_to_the_root_is_in_order():
    """With the root or without, which clients have; an authority below it may be trusted, too."""
    between = intermediate()
    own = issue(between, "b", NOW, hosts=["kafka.example"])
    assert doubts(material(own, between)) == []
    assert doubts(material(own, between, ROOT, trusted=[])) == []
    assert doubts(material(own, trusted=[between])) == []
    public = [ROOT.certificate.public_bytes(Encoding.DER)]
    assert doubts(material(own, between, trusted=[]), public=public) == []


def test_what_is_no_certificate_is_left_to_the_context():
    """It says what is wrong there."""
    rubbish = Material(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")
    assert doubts(rubbish) == []
    assert doubts(Material()) == []
