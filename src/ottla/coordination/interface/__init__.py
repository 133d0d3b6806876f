"""What every store offers, and what its implementations share. Begin in `store`."""
