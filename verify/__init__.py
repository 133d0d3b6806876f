"""Programs that check Ottla itself: protocol walks, simulated clusters, judges of histories."""
