"""cas: content-addressed deduplicating sync over SSH that looks inside archives.

This package is the engine: values and their formats, the protocol, the agent at the source, the
pull here, the store. It never imports `indexes` (LMDB tables) or `cli` (commands); it is handed
what it needs, typed by the protocols in `cas.interfaces`.
"""

__version__ = "0.1.0"
