"""Virtual time: an event loop without a real clock, and the simulated processes that run on it."""
