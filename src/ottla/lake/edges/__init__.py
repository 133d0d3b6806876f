"""The interfaces of the lake: Spark's data source and sink, pipeline files, notebooks.

Begin with `datasource`, `pipeline` or `notebook`.
"""
