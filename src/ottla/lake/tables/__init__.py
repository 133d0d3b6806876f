"""Ottla's own format, Delta and Iceberg, behind `table.LakeTable`.

`opening` opens or creates a table. The manifest has the proof, and the format's own log has the
manifest's digest. A further format needs a `format_log.TableLog` in a module of its own, a name in
`formats`, and a case in `opening`. `write.table_schema.require_holdable` rejects columns that a
format cannot hold.
"""
