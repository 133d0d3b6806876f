"""How a setting is declared: its type, bounds and uses. Begin in `setting`."""
