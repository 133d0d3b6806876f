"""Which files others may use, and how a file is made that they never could."""

import errno
import os
import stat

import pytest

from ottla.base.private_files import (
    exposed_file,
    exposed_folder,
    is_exposed,
    make_private_folder,
    narrow,
    whose,
    write_private,
)
from ottla.storage.disk.errors import storage_error


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request):
    """The law holds whatever the process's mask is."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_file_is_its_owners_alone_from_its_first_moment(tmp_path, umask, monkeypatch):
    """Also before its content is in it, and where a file of that name was open to all."""
    made = []
    fdopen = os.fdopen

    def seen(descriptor, *words):
        made.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return fdopen(descriptor, *words)

    monkeypatch.setattr(os, "fdopen", seen)
    path = tmp_path / "password"
    path.touch(0o666)
    write_private(path, b"secret", durably=True)
    assert made == [0o600]
    assert (mode(path), path.read_bytes()) == (0o600, b"secret")
    assert [each.name for each in tmp_path.iterdir()] == ["password"]
    make_private_folder(tmp_path / "folder")
    assert mode(tmp_path / "folder") == 0o700


def test_a_link_that_waits_under_the_temporary_name_is_not_followed(tmp_path):
    """Another user of a shared folder cannot choose where the secret goes."""
    (tmp_path / ".password.new").symlink_to(tmp_path / "elsewhere")
    write_private(tmp_path / "password", b"secret")
    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "password").is_symlink()


def test_narrow_takes_the_file_from_all_others_and_says_what_it_was(tmp_path):
    """A private or missing file stays as it is."""
    path = tmp_path / "file"
    assert narrow(str(path)) is None
    path.touch()
    path.chmod(0o640)
    assert narrow(str(path)) == 0o640
    assert mode(path) == 0o600
    path.chmod(0o400)
    assert narrow(str(path)) is None
    assert mode(path) == 0o400


@pytest.mark.parametrize(
    ("bits", "owner", "user", "exposed"),
    [
        (0o600, 1000, 1000, False),
        (0o400, 0, 1000, False),
        (0o640, 1000, 1000, True),
        (0o604, 1000, 1000, True),
        (0o620, 0, 1000, True),
        # As an orchestrator hands a key to a service: root's, and of the service's group.
        (0o440, 0, 1000, False),
        (0o640, 0, 1000, False),
        (0o644, 0, 1000, True),
        # For root itself there is no such group.
        (0o640, 0, 0, True),
    ],
)
def test_a_key_is_exposed_if_more_than_its_user_may_read_it(bits, owner, user, exposed):
    """The group of root's files excepted, which is how a service gets one."""
    assert is_exposed(bits, owner, user) is exposed


def test_exposed_files_and_folders_are_named_by_their_mode(tmp_path):
    """What is missing exposes nothing; a folder's group is its administrator's decision."""
    file, folder = tmp_path / "key.pem", tmp_path / "data"
    assert exposed_file(str(file)) is None
    assert exposed_folder(str(folder)) is None
    file.touch()
    folder.mkdir()
    found = []
    for bits in (0o600, 0o604):
        file.chmod(bits)
        found.append(exposed_file(str(file)))
    for bits in (0o700, 0o770, 0o755, 0o1777):
        folder.chmod(bits)
        found.append(exposed_folder(str(folder)))
    assert found == [None, 0o604, None, None, 0o755, 0o1777]


def test_a_denied_access_names_both_users(tmp_path):
    """By the nearest thing that exists: a missing folder's parent is what denies."""
    clause = f"belongs to user {os.geteuid()}, and this process is user {os.geteuid()})"
    assert whose(f"{tmp_path}/missing/file") == f" ({tmp_path} {clause}"
    error = storage_error(PermissionError(errno.EACCES, "denied"), f"{tmp_path}/x", "open the log")
    assert f"denied ({tmp_path} {clause}" in error.message
    assert "`chown -R` it to the user that runs the broker" in error.message
