"""Laws of the transaction coordinator's core."""
