"""From raw records to columns: typed values, event times, and the rows of a changelog.

`decoder` is the core: it turns a batch of raw rows into typed columns and bad rows. `value_reader`,
`avro_values` and `protobuf_values` read the formats. A bad value only affects its own row.
"""
