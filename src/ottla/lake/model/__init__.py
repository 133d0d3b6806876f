"""Values of the lake."""
