"""How a commit becomes visible: Ottla's own format, Delta and Iceberg, behind `table.LakeTable`.

`opening` opens or makes a table; the manifest has the proof, the format's own log its digest.
"""
