"""The files of secured brokers in their data folder, and clients' settings.

They are created at the first start (`setup`) and found again at the next one.
"""

from dataclasses import dataclass
from pathlib import Path

from ottla.base.private_files import write_private
from ottla.base.settings import properties_text
from ottla.operations.secure.login import ClientLogin, kept_password
from ottla.operations.secure.settings import ADMINISTRATOR


@dataclass(frozen=True, slots=True)
class SecureFolder:
    """The files in a data folder, which is absolute."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def authority_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def certificate(self) -> Path:
        """The brokers' key, then its certificate."""
        return self.folder / "server.pem"

    @property
    def password(self) -> Path:
        """The file with the administrator's password."""
        return self.folder / "admin.password"

    @property
    def broker_password(self) -> Path:
        """The file with the password by which brokers log in to each other."""
        return self.folder / "broker.password"

    @property
    def for_java(self) -> Path:
        return self.folder / "client.properties"

    @property
    def for_librdkafka(self) -> Path:
        return self.folder / "librdkafka.properties"

    @property
    def stores(self) -> dict[str, str]:
        """The key store and trust store settings of brokers."""
        return {
            "ssl.keystore.location": str(self.certificate),
            "ssl.truststore.location": str(self.authority),
        }

    @property
    def is_there(self) -> bool:
        """Whether brokers of this folder were started with --secure.

        Raises PermissionError where the folder is another user's.
        """
        return any(path.exists() for path in (self.password, self.authority_key, self.for_java))

    def login(self) -> ClientLogin:
        """The administrator's login; with a new password if there is none.

        Raises OttlaError, OSError.
        """
        return ClientLogin(ADMINISTRATOR, kept_password(self.password), str(self.authority))

    def write_clients(self) -> None:
        """Write the clients' settings for the present folder and password. Raises OSError."""
        login = self.login()
        for path, settings in (
            (self.for_java, login.for_java()),
            (self.for_librdkafka, login.for_librdkafka()),
        ):
            text = properties_text(settings).encode()
            if not path.exists() or path.read_bytes() != text:
                write_private(path, text)
