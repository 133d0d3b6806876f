"""Virtual time: an event loop without a clock, and the processes that live on it."""
