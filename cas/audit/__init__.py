"""Says where what is held was first had from, and where else it is."""
