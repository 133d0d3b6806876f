"""The request handlers, one file per API."""
