"""An SSL context that keeps the alert of a failed handshake; event loops would drop it unsent."""

import ssl


class HandshakeFailed(ssl.SSLError):
    """A handshake failed with `error`; `alert` must still be sent to the client."""

    def __init__(self, error: ssl.SSLError, alert: bytes) -> None:
        super().__init__(*error.args)
        self.error = error
        self.alert = alert


class _Handshake(ssl.SSLObject):
    """The server side of one TLS connection."""

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            raise HandshakeFailed(error, self.outgoing.read()) from error


class TlsContext(ssl.SSLContext):
    """Creates the server side of TLS connections; its handshakes raise `HandshakeFailed`."""

    sslobject_class = _Handshake

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # The base class's signature.
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See the base class."""
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _Handshake)
        made.outgoing = outgoing
        return made
