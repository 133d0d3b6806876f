"""Ottla's own format, Delta and Iceberg, behind `table.LakeTable`.

`opening` opens or creates a table. The manifest proves which records a load contains; the format's
own log stores the manifest's digest. A further format needs a `format_log.TableLog` in a module of
its own, a name in `formats`, and a case in `opening`. `write.table_schema.require_holdable` rejects
columns that a format cannot hold.
"""
