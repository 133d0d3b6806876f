"""Event time: which day or hour a row belongs to, late rows, and how far a table is complete."""
