"""The folder of a table: its name, its errors, its running loads and their leftover files."""
