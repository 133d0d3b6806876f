"""The request handlers: one class for each API, one module for each family of APIs."""
