"""The interface of every store, and the code that its implementations share. Begin in `store`."""
