"""The settings of one broker: its file, dynamic changes, and the defaults.

Sources in order of precedence (KIP-226): changed for this broker, changed for all brokers,
the broker's own file, Kafka's default. Reading is a dictionary look-up of a typed value.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.order import check_order, check_together, no_connections
from ottla.base.settings.properties import parse_properties
from ottla.base.settings.tables import BROKER_SETTINGS, FORMER_SETTINGS, setting_named, unknown_name
from ottla.base.settings.tables.setting import Setting, UpdateMode, Use, Value

# Names that users may set freely, for plug-ins and listeners (`listener.name.internal.ssl…`).
_OPEN_PREFIXES = ("listener.name.",)

# Settings that may be set for a single listener.
_ROOM = (".max.connections", ".max.connection.creation.rate")
_OF_LISTENERS = (
    *_ROOM,
    ".connections.max.reauth.ms",
    ".sasl.enabled.mechanisms",
    ".sasl.jaas.config",
)
_SSL = "ssl."
_SASL = "sasl."
# Settings that a listener may have for OAUTHBEARER only, after the mechanism's name.
_BEARER = "oauthbearer."
_OF_BEARER = ("sasl.oauthbearer.", "sasl.login.")

Listener = Callable[[frozenset[str]], None]


class BrokerSettings:
    """Typed access to the settings of one broker.

    `static` has the content of server.properties, as text. Raises OttlaError(INVALID_CONFIG) for an
    unknown name (with the nearest name), for an invalid value, for values that contradict each
    other, and for a setting that needs a feature that Ottla does not have.
    """

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.static: dict[str, str] = dict(static or {})
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        # Settings accepted without effect, as sentences for the log at startup.
        self.notes: list[str] = []
        self._listeners: list[Listener] = []
        self._values: dict[str, Value] = {n: s.default for n, s in BROKER_SETTINGS.items()}
        for name, text in self.static.items():
            self._take_static(name, text)
        check_order(frozenset(self.static), self.value)
        check_together(frozenset(self.static), self.value)

    def _take_static(self, name: str, text: str) -> None:
        setting = BROKER_SETTINGS.get(name)
        if setting is not None:
            value = setting.parse(text)
            if setting.use is Use.REFUSED and value not in (setting.default, "", False, ()):
                raise refused(setting)
            if setting.use is Use.UNUSED:
                self.notes.append(f"{name} is accepted and changes nothing: {setting.doc}")
            self._values[name] = value
        elif name in FORMER_SETTINGS:
            self.notes.append(f"{name} is accepted and changes nothing: {FORMER_SETTINGS[name]}")
        elif name.startswith(_OPEN_PREFIXES) and name.endswith(_OF_LISTENERS):
            if _of_listener(name.split(".", 3)[3]).parse(text) == 0 and name.endswith(_ROOM):
                raise OttlaError(ErrorCode.INVALID_CONFIG, no_connections(name))
        elif name.startswith(_OPEN_PREFIXES) and _is_of_bearer(name):
            _of_listener(name.split(".", 3)[3]).parse(text)
        elif name.startswith(_OPEN_PREFIXES) and name.split(".", 3)[-1].startswith(_SSL):
            own = name.split(".", 3)[-1]
            if own not in BROKER_SETTINGS:
                raise unknown_name(own, tuple(BROKER_SETTINGS), "broker")
            BROKER_SETTINGS[own].parse(text)
        elif name.startswith(_OPEN_PREFIXES):
            own = _without_mechanism(name.split(".", 3)[-1])
            if own.startswith(_SASL) and own not in BROKER_SETTINGS:
                raise unknown_name(own, tuple(BROKER_SETTINGS), "broker")
            self.notes.append(
                f"{name} is accepted and changes nothing: it is no setting of one listener."
            )
        else:
            raise unknown_name(name, (*BROKER_SETTINGS, *FORMER_SETTINGS), "broker")

    def value(self, name: str) -> Value:
        """Return the value in effect. `name` must be in the table."""
        return self._values[name]

    def integer(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, float), name
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), name
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list; empty if the setting is unset."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple), name
        return value or ()

    def of_listener(self, listener: str, name: str) -> Value:
        """Return a listener's own value of a setting; None if it has none.

        The name may begin with a SASL mechanism, as in `plain.sasl.jaas.config`.
        """
        full = f"listener.name.{listener.lower()}.{name}"
        for texts in (self.dynamic_broker, self.dynamic_default, self.static):
            if full in texts:
                return _of_listener(name).parse(texts[full])
        return None

    def of_mechanism(self, listener: str, mechanism: str, name: str) -> Value:
        """Return the value of a setting for a SASL mechanism of a listener.

        It is the value of `listener.name.LISTENER.MECHANISM.NAME`, else the listener's, else the
        broker's.
        """
        for own in (f"{mechanism.lower()}.{name}", name):
            found = self.of_listener(listener, own)
            if found is not None:
                return found
        return self.value(name)

    def texts_of_listener(self, listener: str, name: str) -> tuple[str, ...]:
        """Return the listener's list, else the broker's."""
        value = self.of_listener(listener, name)
        return value if isinstance(value, tuple) else self.texts(name)

    @property
    def broker_id(self) -> int:
        """node.id; the older broker.id if only that is set."""
        if "node.id" not in self.static and self.integer("broker.id") >= 0:
            return self.integer("broker.id")
        return self.integer("node.id")

    @property
    def keeps_apart(self) -> bool:
        """Whether no two replicas of a partition may share a rack, as `cores` demands."""
        return bool(self.text("cores"))

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """log.dirs; log.dir if that is unset."""
        return self.texts("log.dirs") or self.texts("log.dir")

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with the names whose values changed, after each dynamic change."""
        self._listeners.append(listener)

    def set_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> frozenset[str]:
        """Replace the dynamic settings of all brokers and of this one.

        The texts were validated before they were stored: a text that does not parse, or belongs
        to no dynamic setting, is skipped with a note. Returns the names that changed.
        """
        own = self._of_listeners()
        self.dynamic_default, self.dynamic_broker = dict(default), dict(broker)
        values = {n: s.default for n, s in BROKER_SETTINGS.items()}
        for source in (self.static, default, broker):
            for name, text in source.items():
                setting = BROKER_SETTINGS.get(name)
                if setting is None:
                    continue
                if source is not self.static and setting.update is UpdateMode.READ_ONLY:
                    continue
                try:
                    values[name] = setting.parse(text)
                except OttlaError as error:
                    self.notes.append(f"A stored setting is skipped: {error.message}")
        before = self._values
        changed = frozenset(name for name, value in values.items() if value != before[name])
        changed |= {name for name, _ in own.items() ^ self._of_listeners().items()}
        self._values = values
        if changed:
            for listener in self._listeners:
                listener(changed)
        return changed

    def _of_listeners(self) -> dict[str, str]:
        """Return the dynamic settings of single listeners."""
        texts = {**self.dynamic_default, **self.dynamic_broker}
        return {name: text for name, text in texts.items() if own_name(name) != name}


def _is_of_bearer(name: str) -> bool:
    return name.split(".", 3)[-1].removeprefix(_BEARER).startswith(_OF_BEARER)


def _without_mechanism(name: str) -> str:
    """Remove a SASL mechanism: `sasl.jaas.config` for `plain.sasl.jaas.config`."""
    mechanism, _, rest = name.partition(".")
    return rest if mechanism != "sasl" and rest.startswith(_SASL) else name


def own_name(name: str) -> str:
    """Remove the listener: `ssl.key.password` for `listener.name.NAME.ssl.key.password`."""
    return name.split(".", 3)[-1] if name.startswith(_OPEN_PREFIXES) else name


def dynamic_setting(name: str) -> Setting:
    """Return the table row of a broker setting that a client names, possibly for one listener.

    Raises OttlaError(INVALID_CONFIG) if there is none.
    """
    own = own_name(name)
    if own == name:
        return setting_named(BROKER_SETTINGS, name, "broker")
    # A listener's other settings are read only when the broker starts.
    is_changeable = own.startswith(_SSL) or f".{own}" in _ROOM
    update = UpdateMode.READ_ONLY
    if is_changeable and own in BROKER_SETTINGS:
        update = BROKER_SETTINGS[own].update
    return _of_listener(own)._replace(name=name, update=update)


def is_secret(name: str) -> bool:
    """Return whether a broker setting's values are hidden, for `listener.name.NAME.…` too."""
    own = own_name(name)
    row = BROKER_SETTINGS.get(own) or BROKER_SETTINGS.get(own.partition(".")[2])
    return row is not None and row.sensitive


def without_secrets(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in a form that may be logged."""
    return {name: "(hidden)" if is_secret(name) else text for name, text in texts.items()}


def _of_listener(name: str) -> Setting:
    """Return the table row of a setting of one listener, or of one of its SASL mechanisms."""
    row = BROKER_SETTINGS.get(name) or BROKER_SETTINGS.get(name.partition(".")[2])
    if row is None:
        raise unknown_name(name, BROKER_SETTINGS, "listener")
    return row


def refused(setting: Setting) -> OttlaError:
    """Return the error for a setting that needs a feature Ottla does not have."""
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{setting.name} cannot be honoured: {setting.doc} Remove the setting.",
    )


def read_broker_settings(path: Path) -> BrokerSettings:
    """Read the settings in `path`: UTF-8 text, with or without a byte order mark.

    Raises OttlaError(INVALID_CONFIG) if the file cannot be read, or a setting is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise OttlaError(ErrorCode.INVALID_CONFIG, f"cannot read {path}: {why}") from None
    return BrokerSettings(parse_properties(text))
