"""Applies set, delete, append and subtract to settings (KIP-339)."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings.tables import setting_named
from ottla.base.settings.tables.setting import ConfigType, Setting


class AlterOperation(IntEnum):
    """The operation numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One requested change. `operation` may be a number outside `AlterOperation`."""

    name: str
    operation: int
    text: str | None


def altered(
    held: Mapping[str, str],
    alterations: Sequence[Alteration],
    table: dict[str, Setting],
    kind: str,
    inherited: Mapping[str, str],
) -> dict[str, str]:
    """Apply `alterations` to the settings `held`. Values are not checked here.

    `inherited` has the values of list settings that `held` lacks: append and subtract start
    from there. `kind` is the word for messages: "broker", "topic", "group".
    Raises OttlaError(INVALID_REQUEST, INVALID_CONFIG).
    """
    names: set[str] = set()
    for alteration in alterations:
        if alteration.name in names:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Error due to duplicate config keys: {shortened(alteration.name)} is given twice",
            )
        names.add(alteration.name)
    after = dict(held)
    for name, number, text in alterations:
        try:
            operation = AlterOperation(number)
        except ValueError:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Unknown operation type {number} for config {shortened(name)}",
            ) from None
        if operation is AlterOperation.DELETE:
            # As in Kafka, deleting an unset or unknown setting is no error.
            after.pop(name, None)
            continue
        if text is None:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Null value not supported for config {shortened(name)}; delete it to go "
                "back to the default",
            )
        if operation is AlterOperation.SET:
            after[name] = text
        else:
            setting = setting_named(table, name, kind)
            before = held.get(name, inherited.get(name, ""))
            after[name] = _edit_list(setting, operation, before, text)
    return after


def _edit_list(setting: Setting, operation: AlterOperation, before: str, text: str) -> str:
    if setting.type is not ConfigType.LIST:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation.name} to key {setting.name} because its type is not LIST; set it",
        )
    items = [item.strip() for item in before.split(",") if item.strip()]
    given = dict.fromkeys(item.strip() for item in text.split(",") if item.strip())
    if operation is AlterOperation.APPEND:
        held = set(items)
        items += [item for item in given if item not in held]
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)
