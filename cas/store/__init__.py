"""The store: packs, snapshots and the index that finds things in them, under one directory."""
