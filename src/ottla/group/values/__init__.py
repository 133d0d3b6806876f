"""Values that groups of all protocols share: members, topics, assigned partitions, timers."""
