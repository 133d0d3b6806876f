"""Where others meet the lake: Spark's data source and sink, pipeline files, notebooks.

Begin with `datasource`, `pipeline_run` or `rows`.
"""
