"""The files of secured brokers in their data folder: which there are, and clients' settings.

They are made at the first start (`making`) and found again at the next one.
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
        """The administrator's."""
        return self.folder / "admin.password"

    @property
    def broker_password(self) -> Path:
        """By which brokers log in to each other."""
        return self.folder / "broker.password"

    @property
    def for_java(self) -> Path:
        return self.folder / "client.properties"

    @property
    def for_librdkafka(self) -> Path:
        return self.folder / "librdkafka.properties"

    @property
    def stores(self) -> dict[str, str]:
        """Where brokers find key, certificate and authority."""
        return {
            "ssl.keystore.location": str(self.certificate),
            "ssl.truststore.location": str(self.authority),
        }

    @property
    def is_there(self) -> bool:
        """Whether brokers of this folder were started with --secure. The password may be gone.

        Raises PermissionError where the folder is another user's.
        """
        return any(path.exists() for path in (self.password, self.authority_key, self.for_java))

    def login(self) -> ClientLogin:
        """The administrator's; a new password where there is none. Raises OttlaError, OSError."""
        return ClientLogin(ADMINISTRATOR, kept_password(self.password), str(self.authority))

    def write_clients(self) -> None:
        """Write the settings of clients, as the folder and the password are now. Raises OSError."""
        login = self.login()
        for path, settings in (
            (self.for_java, login.for_java()),
            (self.for_librdkafka, login.for_librdkafka()),
        ):
            text = properties_text(settings).encode()
            if not path.exists() or path.read_bytes() != text:
                write_private(path, text)
