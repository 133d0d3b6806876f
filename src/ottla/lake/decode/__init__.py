"""Keys and values of records as typed columns.

`types` are the types of columns in words, `spec` what a user declares, `decoder` the core without
I/O: a batch of raw rows in, typed columns and refused rows out. Each format stands in a module of
its own; `convert` turns Python values into Arrow columns, strictly, and one bad row costs only
itself. `registry` asks a schema registry.
"""
