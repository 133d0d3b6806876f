"""Decodes keys and values of records as typed columns.

`types` has the types of columns in words, `spec` the user's declaration, `decoder` the core without
I/O: a batch of raw rows in, typed columns and refused rows out. Each format has a module of its
own. `convert` turns Python values into Arrow columns, strictly; a bad value only affects its own
row. `registry` asks a schema registry.
"""
