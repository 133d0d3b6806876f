"""The functions that write a table, and their options."""
