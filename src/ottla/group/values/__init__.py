"""Values that groups of all protocols share: members, topics, shares of partitions, timers."""
