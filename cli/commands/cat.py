"""`cas cat`: a file's content on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from cas.errors import EXIT_DONE, NotHeldError, UsageError
from cli import options, output
from cli.options import Target

if TYPE_CHECKING:
    from cas.entry import Entry
    from cas.store.store import Store


@click.command("cat", short_help="Write files to standard output.")
@options.targets_argument
@options.plan_option
@options.store_option
def command(targets: tuple[Target, ...], plan_path: str | None, store_path: Path | None) -> int:
    """Write the content of files to standard output, one after another.

    Every chunk is hashed before it is written, and every file as a whole after its last byte: if
    that fails, it is said and the exit code is 12. What lies in an archive has only its chunks
    hashed.

    \b
    Examples:
      cas cat 00-critical-context:/opt/calrt/VERSION
      cas cat source:/srv/llama.cpp.tar.gz | tar tz | less
      cas cat source:/srv/llama.cpp.tar.gz!/llama.cpp/README.md
    """
    from cli import wiring

    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        # All are looked up before anything is written: a wrong name should not show half-way.
        writers = [_writer(store, target) for target in targets]
        for write in writers:
            sys.stdout.flush()
            write(sys.stdout.buffer)
    return EXIT_DONE


def _writer(store: Store, target: Target) -> Callable[[BinaryIO], None]:
    """What writes the file that `target` names."""
    from cas.rebuild.run import copy_content
    from cli.inside import find_inside
    from cli.selection import snapshot_of

    inside = find_inside(store, snapshot_of(store, target.tier), target)
    if inside is not None:
        data = inside.data(store)
        return lambda out: out.writelines(data)
    entry = _file(store, target)
    content = entry.content
    if content is None:
        return lambda _: None
    return partial(copy_content, content, store.reader, hashed=_hashes(entry))


def _file(store: Store, target: Target) -> Entry:
    from cas.entry import INCONSISTENT, Kind
    from cli.listing import kind_name
    from cli.selection import no_such_name, place, snapshot_of

    where = place(target)
    snapshot = snapshot_of(store, target.tier)
    if not target.path:
        raise UsageError("a file of the tier must be named", where=target.tier, advice="TIER:PATH")
    entry = store.find(snapshot, target.path)
    if entry is None:
        raise no_such_name(target)
    if entry.kind is not Kind.FILE:
        raise UsageError(f"is no file but a {kind_name(entry.kind)}", where=where)
    if entry.content is None:
        raise NotHeldError("its content could not be read at the source", where=where)
    if entry.flags & INCONSISTENT:
        output.say(f"{where} changed while it was read; this is one of its states, perhaps torn")
    return entry


def _hashes(entry: Entry) -> bool:
    """Whether the entry's digest is that of its bytes."""
    from cas.entry import HOLE_DIGEST

    return not entry.flags & HOLE_DIGEST
