"""How a table's typed columns follow the fields of its records: add, widen, rename. Pure.

Columns are never removed, and their types only become wider. Any other change is refused: with an
error if a declaration asks for it, as a bad record if a record needs it.
"""

from collections.abc import Sequence
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import Column, Side, free_name
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.types import Type, list_of, map_of, struct_of
from ottla.lake.rows.decoder import NewField
from ottla.lake.rows.infer import widened

# Fields of Debezium's envelopes that have the same type.
_TWINS = {"before": "after", "after": "before"}


def evolved(
    schema: TypedSchema, news: Sequence[NewField], *, envelopes: frozenset[Side] = frozenset()
) -> tuple[TypedSchema, list[str]]:
    """Return the schema with all of `news`, and a sentence for each of them, in the same order.

    `envelopes` are the sides with Debezium's envelopes, whose `before` and `after` grow together.
    """
    said = []
    found = schema
    for new in news:
        changed, what = _with(found, new)
        twin = _TWINS.get(new.path[0]) if new.path and new.side in envelopes else None
        if twin is not None and len(new.path) > 1:
            changed, _ = _with(changed, replace(new, path=(twin, *new.path[1:])))
        said.append(what)
        found = changed
    return (replace(found, number=schema.number + 1) if found != schema else schema), said


def renamed(
    schema: TypedSchema, rename: Sequence[tuple[str, str]]
) -> tuple[TypedSchema, list[str]]:
    """Return the schema with columns renamed, (new, old) each; a rename done already is skipped.

    A renamed column takes a field of the new name, else one of the old name. Raises OttlaError if
    there is no column of the old name, or another column has the new name.
    """
    found, said = schema, []
    for new, old in rename:
        side, column = _named(found, old)
        if column is None:
            _, done = _named(found, new)
            if done is not None:
                continue
            raise _refused(f"there is no column {old} to rename to {new}")
        if _named(found, new)[1] is not None:
            raise _refused(f"{old} can't be renamed to {new}: there is a column of that name")
        path = (*column.source[:-1], new) if column.source else ()
        other = replace(
            column, name=new, source=path, also=(column.source, *column.also) if path else ()
        )
        columns = tuple(other if one is column else one for one in found.of(side))
        found = found.with_columns(side, columns)
        said.append(f"rename {old} to {new}")
    return (replace(found, number=schema.number + 1) if said else schema), said


def reconciled(schema: TypedSchema, wanted: TypedSchema) -> tuple[TypedSchema, list[str]]:
    """Return the table's schema with a declaration's additions and wider types, and their list.

    Columns and fields that the declaration leaves out stay, and so does a type that is wider than
    the declared one. Raises OttlaError if it asks for another type.
    """
    found, said = schema, []
    sides: tuple[Side, Side] = ("key", "value")
    for side in sides:
        columns = {one.name: one for one in found.of(side)}
        for one in wanted.of(side):
            before = columns.get(one.name)
            if before is None:
                columns[one.name] = one
                said.append(f"add {one.name} {one.type}")
                continue
            wide = widened(before.type, one.type)
            if wide is None:
                raise _refused(
                    f"the column {one.name} is {before.type} in the table and can't become "
                    f"{one.type}: declare it under another name"
                )
            if wide != before.type:
                columns[one.name] = replace(before, type=wide)
                said.append(f"widen {one.name} from {before.type} to {wide}")
        found = found.with_columns(side, tuple(columns.values()))
    return (replace(found, number=schema.number + 1) if said else schema), said


def _with(schema: TypedSchema, new: NewField) -> tuple[TypedSchema, str]:
    """Return the schema with one new or wider field."""
    columns = list(schema.of(new.side))
    words = ".".join(new.path)
    for place, one in enumerate(columns):
        for source in (one.source, *one.also):
            if new.path[: len(source)] == source:
                kind = _grown(one.type, new.path[len(source) :], new.type)
                if kind == one.type:
                    return schema, f"keep {words}"
                columns[place] = replace(one, type=kind)
                added = len(new.path) > len(source)
                what = f"add {words} {new.type}" if added else f"widen {words} to {kind}"
                return schema.with_columns(new.side, tuple(columns)), what
    taken = {name.lower() for name in schema.names}
    name = free_name(new.path[-1] if new.path else f"{new.side}_decoded", new.side, taken)
    columns.append(Column(name, new.type, source=new.path))
    words = f"{words} as {name}" if name != words and words else name
    return schema.with_columns(new.side, tuple(columns)), f"add {words} {new.type}"


def _grown(kind: Type, path: tuple[str, ...], new: Type) -> Type:
    """Return the type with a field added or widened at `path` below it."""
    if not path:
        return widened(kind, new) or kind
    name, *rest = path
    if kind.kind in ("list", "map"):
        inner = _grown(kind.element, tuple(rest), new)
        return list_of(inner) if kind.kind == "list" else map_of(inner)
    if kind.kind != "struct":
        return kind
    fields = dict(kind.fields)
    fields[name] = _grown(fields[name], tuple(rest), new) if name in fields else new
    return struct_of(tuple(fields.items()))


def _named(schema: TypedSchema, name: str) -> tuple[Side, Column | None]:
    sides: tuple[Side, Side] = ("key", "value")
    for side in sides:
        for one in schema.of(side):
            if one.name == name:
                return side, one
    return "value", None


def _refused(message: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"{message}; nothing was loaded")
