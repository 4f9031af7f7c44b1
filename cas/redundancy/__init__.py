"""What tiers have in common and what they would cost, from snapshots alone."""
