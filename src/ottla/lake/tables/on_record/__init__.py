"""The bytes of a log's files, which each load puts on record, compared with what is there."""
