"""How a commit becomes visible: Ottla's own format, Delta and Iceberg, behind `table.LakeTable`.

`opening` opens or makes a table; the manifest has the proof, the format's own log its digest. A
further format with a log of its own is a `format_log.TableLog` in a module of its own, a name in
`formats`, and a case in `opening`; `write.table_schema` refuses types that it lacks.
"""
