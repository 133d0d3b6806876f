"""What `ottla undo` needs of a broker: recorded changes, and the trash of deleted topics."""
