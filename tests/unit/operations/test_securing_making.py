"""What is made in the data folder at the first start, kept at the next, and made anew in time."""

import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from ottla.base.errors import OttlaError
from ottla.operations.certificates import issue, load_authority, new_authority
from ottla.operations.securing.folder import SecureFolder
from ottla.operations.securing.making import prepare, renew, stores_in_memory
from ottla.operations.securing.passwords import kept_password

NOW = datetime(2026, 11, 23, tzinfo=UTC)
PRIVATE = ("ca.key", "server.pem", "admin.password", "client.properties", "librdkafka.properties")


@pytest.fixture
def files(tmp_path):
    return SecureFolder(tmp_path / "data")


def contents(files):
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def certificate(files):
    return x509.load_pem_x509_certificate(files.certificate.read_bytes())


def changed(files, before):
    return sorted(name for name, data in contents(files).items() if before.get(name) != data)


def test_the_first_start_makes_everything_for_its_owner_alone(files):
    """The authority's certificate is for clients, who are given copies."""
    assert prepare(files, [], NOW) == []
    assert sorted(contents(files)) == sorted([*PRIVATE, "ca.pem"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files.folder.iterdir()}
    assert modes == {**dict.fromkeys(PRIVATE, 0o600), "ca.pem": 0o644}
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert f'password="{kept_password(files.password)}"' in files.for_java.read_text()


def test_the_next_start_changes_nothing(files):
    """Also when it has names fewer than the certificate."""
    prepare(files, ["broker.example", "10.0.0.7"], NOW)
    before = contents(files)
    assert prepare(files, ["10.0.0.7"], NOW + timedelta(days=300)) == []
    assert changed(files, before) == []


def test_a_certificate_is_made_anew_before_it_expires_and_for_a_new_name(files):
    """By the same authority, so that clients notice nothing."""
    prepare(files, [], NOW)
    before = contents(files)
    assert renew(files, [], NOW + timedelta(days=340)) == []
    assert changed(files, before) == ["server.pem"]
    assert certificate(files).not_valid_after_utc == NOW + timedelta(days=340 + 397)
    before = contents(files)
    renew(files, ["broker.example"], NOW + timedelta(days=340))
    assert changed(files, before) == ["server.pem"]
    names = certificate(files).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["broker.example", "localhost"]


def test_a_damaged_or_foreign_certificate_is_made_anew(files):
    """One that clients of this authority would refuse."""
    prepare(files, [], NOW)
    other = new_authority("other", NOW)
    for data in (b"", b"rubbish", issue(other, "ottla", NOW, hosts=["localhost"]).pem):
        files.certificate.write_bytes(data)
        renew(files, [], NOW)
        authority = load_authority(files.authority, files.authority_key)
        certificate(files).verify_directly_issued_by(authority.certificate)


def test_an_authority_that_is_about_to_expire_is_replaced_and_clients_must_know(files):
    """No certificate outlives its authority."""
    prepare(files, [], NOW)
    late = NOW + timedelta(days=3650 - 70)
    assert renew(files, [], late) == []
    assert certificate(files).not_valid_after_utc == NOW + timedelta(days=3650)
    before = contents(files)
    (note,) = renew(files, [], late + timedelta(days=20))
    assert note.endswith(f"give clients the new {files.authority}")
    assert changed(files, before) == ["ca.key", "ca.pem", "server.pem"]


def test_certificates_without_the_authoritys_key_are_their_owners(files):
    """They are neither replaced nor judged; half of them is refused."""
    prepare(files, [], NOW)
    files.authority_key.unlink()
    before = contents(files)
    assert prepare(files, ["broker.example"], NOW + timedelta(days=5000)) == []
    assert changed(files, before) == []
    files.certificate.unlink()
    with pytest.raises(OttlaError, match=r"neither its ca\.key nor a server\.pem"):
        prepare(files, [], NOW)


def test_files_that_cannot_be_used_are_named_with_a_remedy(files):
    """An empty password, rubbish for a key, a folder that is a file."""
    prepare(files, [], NOW)
    files.password.write_text("\n")
    with pytest.raises(OttlaError, match=r"admin\.password holds no password"):
        prepare(files, [], NOW)
    files.password.unlink()
    files.authority_key.write_bytes(b"rubbish")
    with pytest.raises(OttlaError, match=r"ca\.key beside it cannot be used"):
        prepare(files, [], NOW)
    files.authority_key.unlink()
    files.authority.unlink()
    below = SecureFolder(files.password.parent / "server.pem" / "data")
    with pytest.raises(OttlaError, match="keeps certificates and passwords in"):
        prepare(below, [], NOW)


def test_files_that_were_open_to_others_are_narrowed_and_named(files):
    """Their owner decides whether they must be replaced."""
    prepare(files, [], NOW)
    files.password.chmod(0o644)
    (note,) = prepare(files, [], NOW)
    assert note.startswith(f"{files.password} was open to other users")
    assert stat.S_IMODE(files.password.stat().st_mode) == 0o600


def test_a_password_that_was_changed_by_hand_is_in_the_clients_settings_at_the_next_start(files):
    """After `ottla user password admin` it is written to the file."""
    prepare(files, [], NOW)
    files.password.write_text("another one\n")
    prepare(files, [], NOW)
    assert 'password="another one"' in files.for_java.read_text()
    assert "sasl.password=another one\n" in files.for_librdkafka.read_text()


def test_a_broker_in_memory_gets_its_stores_as_text():
    """Key, certificate and authority, of which only the first is secret."""
    stores = stores_in_memory(["10.0.0.7"], NOW)
    assert {name: text.splitlines()[0] for name, text in stores.items()} == {
        "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----",
        "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----",
        "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----",
    }
