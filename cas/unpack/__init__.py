"""From an archive to its recipe: containers taken apart, streams unpacked, files chunked."""
