"""Says whether what is held is right: a store (`store.py`), or a restored tree (`tree.py`)."""
