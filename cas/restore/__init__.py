"""From entries to a tree of files, safely: names come from a peer that is not trusted.

`tree.restore_entries` is the way in. Three things hold whatever the entries say:

- Nothing outside the target is touched. Every name is made relative to the descriptor of its
  directory, and directories are opened one component at a time without following symlinks
  (`directories.py`). So a symlink, restored a moment ago or there before, is never gone through.
- A final name holds all of its file or does not exist (`files.py`): content is written to a file
  without a name, checked, given its metadata, and only then linked into place.
- One name that cannot be restored is listed, and the others go on.
"""
