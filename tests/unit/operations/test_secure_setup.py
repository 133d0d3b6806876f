"""What is made in the data folder at the first start, kept at the next, and made anew in time."""

import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from ottla.base.errors import OttlaError
from ottla.operations.certificates import issue, key_pem, load_authority, new_authority
from ottla.operations.secure.login import kept_password
from ottla.operations.secure.settings import SecureFolder
from ottla.operations.secure.setup import prepare, renew, stores_in_memory

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


def test_a_certificate_that_is_made_anew_keeps_its_names(files):
    """A second start that is refused later does not take names from a broker that runs."""
    prepare(files, ["broker.example", "10.0.0.7"], NOW)
    prepare(files, ["other.example"], NOW)
    names = certificate(files).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == [
        "other.example",
        "localhost",
        "broker.example",
    ]
    assert "10.0.0.7" in map(str, names.value.get_values_for_type(x509.IPAddress))


def test_a_damaged_certificate_or_one_of_a_former_authority_is_made_anew(files):
    """One that clients of this authority would refuse."""
    prepare(files, [], NOW)
    other = new_authority("Ottla development authority", NOW)
    for data in (b"", b"rubbish", issue(other, "ottla", NOW, hosts=["localhost"]).pem):
        files.certificate.write_bytes(data)
        renew(files, [], NOW)
        authority = load_authority(files.authority, files.authority_key)
        certificate(files).verify_directly_issued_by(authority.certificate)


def test_a_certificate_of_an_authority_of_others_is_not_replaced(files):
    """Its key would be lost: the owner forgot to remove ca.key, or to bring ca.pem."""
    prepare(files, [], NOW)
    other = new_authority("Example Corporation", NOW)
    files.certificate.write_bytes(issue(other, "ottla", NOW, hosts=["localhost"]).pem)
    before = contents(files)
    for gone in ((), (files.authority, files.authority_key)):
        for path in gone:
            before.pop(path.name)
            path.unlink()
        with pytest.raises(OttlaError, match=r"signed by CN=Example Corporation, not by"):
            prepare(files, [], NOW)
        assert contents(files) == before


def test_a_first_start_that_was_killed_between_the_authoritys_files_is_finished(files):
    """The key was on the disk, its certificate was not; a copy of that would stay good."""
    prepare(files, [], NOW)
    former = x509.load_pem_x509_certificate(files.authority.read_bytes())
    files.authority.unlink()
    assert prepare(files, [], NOW) == []
    certificate(files).verify_directly_issued_by(former)
    files.authority.unlink()
    files.certificate.unlink()
    assert prepare(files, [], NOW) == []
    certificate(files).verify_directly_issued_by(former)


def test_a_key_that_is_not_its_authoritys_is_refused(files):
    """What it signs would be accepted by no client."""
    prepare(files, [], NOW)
    files.authority_key.write_bytes(key_pem(new_authority("other", NOW).key))
    before = contents(files)
    with pytest.raises(OttlaError, match=r"ca\.key is not the key of ca\.pem"):
        prepare(files, ["broker.example"], NOW)
    assert contents(files) == before


def test_what_was_made_while_the_clock_was_ahead_is_made_anew(files):
    """Clients would refuse it until then; those with a copy of the authority notice nothing."""
    prepare(files, [], NOW)
    former = x509.load_pem_x509_certificate(files.authority.read_bytes())
    renew(files, [], NOW + timedelta(days=400))
    assert prepare(files, [], NOW) == []
    assert certificate(files).not_valid_before_utc < NOW
    (note,) = prepare(files, [], NOW - timedelta(days=30))
    assert "made while the clock was ahead" in note
    assert certificate(files).not_valid_before_utc < NOW - timedelta(days=30)
    certificate(files).verify_directly_issued_by(former)


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
    """Their owner decides whether they must be replaced; settings of clients have the password."""
    prepare(files, [], NOW)
    for name in PRIVATE:
        (files.folder / name).chmod(0o644)
        (note,) = prepare(files, [], NOW)
        assert note.startswith(f"{files.folder / name} was open to other users")
        assert stat.S_IMODE((files.folder / name).stat().st_mode) == 0o600


def test_an_authoritys_key_that_others_may_have_read_is_replaced_as_the_note_says(files):
    """Without its key alone the authority would stay, and what the reader signs good."""
    prepare(files, [], NOW)
    former = x509.load_pem_x509_certificate(files.authority.read_bytes())
    files.authority_key.chmod(0o644)
    (note,) = prepare(files, [], NOW)
    assert note.endswith(
        "remove ca.key, ca.pem and server.pem for new ones, and give clients the new ca.pem"
    )
    for path in (files.authority_key, files.authority, files.certificate):
        path.unlink()
    prepare(files, [], NOW)
    with pytest.raises(InvalidSignature):
        certificate(files).verify_directly_issued_by(former)


def test_a_password_that_was_changed_by_hand_is_in_the_clients_settings_at_the_next_start(files):
    """After `ottla user password admin` it is written to the file."""
    prepare(files, [], NOW)
    files.password.write_text("another one\n")
    prepare(files, [], NOW)
    assert 'password="another one"' in files.for_java.read_text()
    assert "sasl.password=another one\n" in files.for_librdkafka.read_text()


def test_an_editors_byte_order_mark_is_not_part_of_the_password(tmp_path):
    """Notepad writes one, and ends lines with CR LF."""
    (tmp_path / "password").write_bytes(b"\xef\xbb\xbfits text\r\n")
    assert kept_password(tmp_path / "password") == "its text"


def test_a_broker_in_memory_gets_its_stores_as_text():
    """Key, certificate and authority, of which only the first is secret."""
    stores = stores_in_memory(["10.0.0.7"], NOW)
    assert {name: text.splitlines()[0] for name, text in stores.items()} == {
        "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----",
        "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----",
        "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----",
    }
