"""The LMDB tables that say where a chunk lies. A cache: packs and snapshots can rebuild it."""
