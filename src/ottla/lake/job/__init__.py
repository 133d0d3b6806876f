"""Jobs of the lake: tasks, and the two places where they run."""
