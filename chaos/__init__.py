"""Real faults on real processes: killed, stopped, cut off, without power; judged by one checker."""
