"""Values of every format for Hypothesis: legal ones, made to share prefixes, owners and chunks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from cas import program
from cas.archive import ArchiveRecipe
from cas.entry import (
    HOLE_DIGEST,
    IMPLIED,
    INCONSISTENT,
    UNREADABLE,
    Content,
    Entry,
    Kind,
    Owner,
    Problem,
    path_order,
)
from cas.frame import Codec
from cas.ids import EMPTY_DIGEST, Digest, digest_of
from cas.pack import Origin, PageRun, Segment
from cas.page import XATTR_NAME_LIMIT
from cas.program import Begin, End, Skeleton, Span, Verbatim
from cas.recipe import LENGTH_LIMIT, SIZE_LIMIT, Copy, Hole, Op, Recipe
from cas.snapshot import PageRef, Snapshot
from cas.wire import I64_MAX, I64_MIN, U32, U64

digests = st.binary(min_size=32, max_size=32).map(Digest)
runs = st.binary(min_size=16, max_size=16)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
u32 = st.integers(0, U32)
u64 = st.integers(0, U64)
names = st.binary(max_size=10).map(lambda name: name.replace(b"\0", b"0"))

_PARTS = st.one_of(
    st.sampled_from([b"a", b"a!", b"a.", b"aa", b"...", b"..b", b"\xff", b"x" * 255]),
    st.binary(min_size=1, max_size=6)
    .map(lambda part: part.replace(b"\0", b"0").replace(b"/", b"_"))
    .filter(lambda part: part not in (b".", b"..")),
)
paths = st.lists(_PARTS, min_size=1, max_size=5).map(b"/".join)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """A recipe with any program, the short form among them."""
    lengths = draw(st.lists(st.integers(1, LENGTH_LIMIT), max_size=8))
    ids = tuple(draw(digests) for _ in lengths)
    program: list[Op] = []
    holes = draw(st.booleans()) or not ids
    if holes:
        cuts = sorted(draw(st.sets(st.integers(0, len(ids)), min_size=1, max_size=4)))
        for start, end in pairwise([0, *cuts, len(ids)]):
            if end > start:
                program.append(Copy(end - start))
            if end in cuts and not (program and isinstance(program[-1], Hole)):
                program.append(Hole(draw(st.integers(1, 2**40))))
    size = sum(lengths) + sum(op.size for op in program if isinstance(op, Hole))
    return Recipe(size, draw(digests), ids, tuple(lengths), tuple(program))


_SIDES = st.integers(0, 40)
_OPS = st.one_of(
    st.builds(Copy, st.integers(1, 3)),
    st.builds(Skeleton, st.integers(1, 600)),
    st.builds(Begin, st.sampled_from(program.Codec), _SIDES),
    st.builds(Span, st.integers(1, program.DEPTH_LIMIT), st.integers(0, SIZE_LIMIT), _SIDES),
    st.builds(Verbatim, st.integers(1, program.DEPTH_LIMIT), st.integers(1, 40)),
    st.builds(End, st.integers(0, SIZE_LIMIT)),
)


@st.composite
def archive_recipes(draw: st.DrawFn) -> ArchiveRecipe:
    """A recipe whose program uses what it has; its levels may be nonsense."""
    drawn = draw(st.lists(_OPS, min_size=1, max_size=12))
    ops = [op for op, before in zip(drawn, [None, *drawn], strict=False)
           if type(op) is not type(before) or not isinstance(op, (Copy, Skeleton))]  # fmt: skip
    used = sum(map(program.skeleton_use, ops))
    copies = sum(op.count for op in ops if isinstance(op, Copy))
    skeleton = [used] if used else []
    lengths = [*skeleton, *(draw(st.integers(1, LENGTH_LIMIT)) for _ in range(copies))]
    ids = tuple(draw(digests) for _ in lengths)
    return ArchiveRecipe(
        draw(st.integers(0, SIZE_LIMIT)), draw(digests), ids, tuple(lengths), len(skeleton),
        tuple(ops), tuple(draw(st.lists(texts, max_size=3))),
    )  # fmt: skip


owners = st.builds(Owner, st.integers(0, 0o7777), u32, u32, names, names)


@st.composite
def entries(draw: st.DrawFn, path: bytes, owner: Owner) -> Entry:
    """A legal entry at `path`."""
    kind = draw(st.sampled_from(Kind))
    size, content, target, device, flags = (
        0,
        None,
        b"",
        None,
        draw(st.sampled_from([0, UNREADABLE])),
    )
    if kind is Kind.FILE:
        content = draw(st.none() | contents())
        size = content.size if content else draw(st.integers(0, SIZE_LIMIT))
        flags = UNREADABLE if content is None else draw(st.sampled_from([0, INCONSISTENT]))
        if content and content.parts:
            flags |= draw(st.sampled_from([0, HOLE_DIGEST]))
    elif kind is Kind.DIRECTORY:
        flags |= draw(st.sampled_from([0, IMPLIED]))
    elif kind is Kind.SYMLINK:
        target = draw(names.filter(bool))
    elif kind in (Kind.BLOCK_DEVICE, Kind.CHARACTER_DEVICE):
        device = (draw(u32), draw(u32))
    mtime_ns = 0 if flags & IMPLIED else draw(st.integers(I64_MIN, I64_MAX))
    attributes = draw(st.dictionaries(names.filter(bool), st.binary(max_size=9), max_size=3))
    assert all(len(name) <= XATTR_NAME_LIMIT for name in attributes)
    return Entry(
        path, kind, owner, mtime_ns, size, content, target, device,
        draw(st.binary(max_size=64)), tuple(sorted(attributes.items())), flags,
    )  # fmt: skip


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """Nothing, one chunk, or recipes."""
    parts = tuple(draw(st.lists(digests, max_size=3)))
    if parts:
        return Content(draw(st.integers(1, SIZE_LIMIT)), draw(digests), draw(st.integers(0, 2**18)),
                       parts)  # fmt: skip
    size = draw(st.integers(0, LENGTH_LIMIT))
    return Content(size, draw(digests) if size else EMPTY_DIGEST, 1 if size else 0)


@st.composite
def pages(draw: st.DrawFn, max_size: int = 12) -> list[Entry]:
    """Entries in path order."""
    found = draw(st.sets(paths, min_size=1, max_size=max_size))
    some = draw(st.lists(owners, min_size=1, max_size=3))
    return [
        draw(entries(path, draw(st.sampled_from(some)))) for path in sorted(found, key=path_order)
    ]


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A snapshot with pages and problems."""
    firsts = sorted(draw(st.sets(paths, max_size=6)), key=path_order)
    pages_ = tuple(
        PageRef(draw(digests), first, draw(st.integers(1, 4096)), draw(u64), draw(u64))
        for first in firsts
    )
    problems = st.builds(Problem, st.binary(max_size=20), texts, texts, st.booleans())
    return Snapshot(
        draw(texts), draw(texts), draw(texts), tuple(draw(st.lists(names, max_size=3))),
        draw(runs), draw(u64), draw(u64), draw(texts), draw(texts), draw(u64), pages_,
        tuple(draw(st.lists(problems, max_size=4))),
    )  # fmt: skip


@st.composite
def origins(draw: st.DrawFn, chunks: int) -> Origin:
    """Where `chunks` chunks came from."""
    cuts = sorted(draw(st.sets(st.integers(1, chunks), max_size=3)) | {chunks})
    counts = [end - start for start, end in pairwise([0, *cuts])]
    found = tuple(PageRun(draw(digests), draw(u32), count) for count in counts)
    return Origin(
        draw(runs), draw(texts), draw(texts), draw(u64), draw(st.integers(-1, U32)), draw(u64),
        draw(st.sampled_from([found, ()])),
    )  # fmt: skip


@st.composite
def segments(draw: st.DrawFn, chunks: list[bytes]) -> Segment:
    """The segment of `chunks`, of any codec and place."""
    lengths = tuple(map(len, chunks))
    return Segment(
        draw(u64), draw(u32), draw(st.sampled_from(Codec)), draw(st.booleans()), sum(lengths),
        lengths, tuple(map(digest_of, chunks)), draw(origins(len(chunks))),
    )  # fmt: skip


chunk_lists = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=6)
