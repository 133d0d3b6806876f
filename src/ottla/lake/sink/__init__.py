"""Writes DataFrames, tables and files back into topics, exactly once.

A series of numbered portions (the epochs of a streaming query, the portions of a publish) is
written in transactions, one for each portion. Each transaction commits the series' mark: the number
of its portion. Begin with `marks` (may a portion be written?), then `committing` (the transaction),
then `writer` (Spark) or `publishing` (tables and files).
"""
