"""Git packs, by git: whole and differences by place and by name, cut off, damaged, and listed."""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.codec import registry
from cas.inside.members import list_members, open_member
from cas.program import Begin, Codec, Span
from cas.unpack.gitpack import is_header
from cas.unpack.source import PEEK_LIMIT
from cas.unpack.splitters import CodecSplitters
from tests.rebuild.archives import DictSource
from tests.unpack.files import run, some_files, write_tree
from tests.unpack.taking import Taken, check, take_apart
from tests.unpack.test_tar import archive as tar_of

FILES = some_files()
WHOLE = [
    FILES[name] for name in ("a/small", "a/chunk", "b/text", "b/random", "c/\u00fcn\u00efcode")
]
NAMED = ("user.name=A", "user.email=a@example.org", "gc.auto=0", "pack.threads=1")
SETTINGS = [word for setting in NAMED for word in ("-c", setting)]


@dataclass
class Repository:
    """One with two commits, whose files `git repack` put into `pack`."""

    root: Path
    pack: Path

    @property
    def data(self) -> bytes:
        return self.pack.read_bytes()

    def git(self, *words: str | Path, data: bytes | None = None) -> bytes:
        return run("git", *SETTINGS, *words, cwd=self.root, data=data)

    def objects(self) -> Iterator[tuple[str, str, int, int, bool]]:
        """What git says: id, type, size, where, whether it is a difference."""
        for line in self.git("verify-pack", "-v", self.pack).decode().splitlines():
            words = line.split()
            if len(words) >= 5 and len(words[0]) in (40, 64):
                yield words[0], words[1], int(words[2]), int(words[4]), len(words) > 5


def repository(root: Path, *, form: str = "sha1", settings_: tuple[str, ...] = ()) -> Repository:
    write_tree(root, FILES)
    run("git", "init", "-q", f"--object-format={form}", ".", cwd=root)
    for edit in (b"", b"and a line\n"):
        text = root / "b/text"
        text.write_bytes(FILES["b/text"][:9000] + edit + FILES["b/text"][9000:])
        run("git", "add", ".", cwd=root)
        run("git", *SETTINGS, "commit", "-q", "-m", "As it is", cwd=root)
    text.write_bytes(FILES["b/text"])
    run("git", *SETTINGS, *settings_, "repack", "-q", "-a", "-d", "-f", cwd=root)
    return Repository(root, next((root / ".git/objects/pack").glob("*.pack")))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return repository(tmp_path_factory.mktemp("repository"))


def source_of(taken: Taken) -> DictSource:
    source = DictSource()
    source.held = taken.chunks | taken.objects
    return source


def really(data: bytes) -> Taken:
    """Taken apart and rebuilt by the codecs of the product."""
    with ThreadPoolExecutor(2) as pool:
        return check(data, splitters=CodecSplitters(pool), joiners=registry.JOINERS)


def test_files_are_found_as_they_are_in_the_work_tree(made: Repository) -> None:
    """But for the text, of which the later version is whole and the earlier a difference."""
    contained = [data for data in WHOLE if data is not FILES["b/text"]]
    later = FILES["b/text"][:9000] + b"and a line\n" + FILES["b/text"][9000:]
    check(made.data, [*contained, later])
    check(tar_of({"a.pack": made.data, "b": b"x" * 999}), [*contained, later])


def test_the_encoder_is_found_out(made: Repository) -> None:
    taken = really(made.data)
    spans = [op for recipe in taken.recipes for op in recipe.program if isinstance(op, Span)]
    begun = [op for recipe in taken.recipes for op in recipe.program if isinstance(op, Begin)]
    assert {Codec.DEFLATE} == {op.codec for op in begun}
    assert len(begun) > len(WHOLE)
    assert not taken.notes
    assert sum(op.side for op in spans) < 0.002 * len(made.data) + 32 * len(spans)


@pytest.mark.parametrize(
    ("form", "settings_"),
    [
        ("sha256", ()),
        ("sha1", ("-c", "repack.useDeltaBaseOffset=false")),
        ("sha256", ("-c", "repack.useDeltaBaseOffset=false")),
        ("sha1", ("-c", "pack.compression=9")),
        ("sha1", ("-c", "pack.compression=0")),
    ],
)
def test_packs_of_other_forms(tmp_path: Path, form: str, settings_: tuple[str, ...]) -> None:
    made = repository(tmp_path, form=form, settings_=settings_)
    assert any(is_difference for *_, is_difference in made.objects())
    taken = check(made.data, [FILES["b/random"], FILES["a/chunk"]])
    assert not any(taken.chunks[id_].startswith(b"tree ") for id_ in taken.contents)  # a commit
    really(made.data)


def test_it_is_listed_as_git_lists_it(made: Repository) -> None:
    taken = really(made.data)
    listed = {
        entry.path.decode(): entry.size for entry in list_members(taken.content, source_of(taken))
    }
    told = {
        f"{'delta' if is_difference else type_}-{at}": size
        for _, type_, size, at, is_difference in made.objects()
    }
    assert told == listed
    for id_, type_, _, at, is_difference in made.objects():
        if not is_difference:
            path = f"{type_}-{at}".encode()
            data = b"".join(open_member(taken.content, path, source_of(taken)))
            assert made.git("cat-file", type_, id_) == data


def test_a_member_lies_in_an_archive_in_an_archive(made: Repository) -> None:
    taken = check(tar_of({"x.pack": made.data, "y": FILES["a/small"]}))
    entries = {entry.path for entry in list_members(taken.content, source_of(taken))}
    assert {b"x.pack", b"y"} < entries
    blob = next(at for _, type_, size, at, _ in made.objects() if size == 16_384)
    data = b"".join(open_member(taken.content, b"x.pack!/blob-%d" % blob, source_of(taken)))
    assert FILES["a/chunk"] == data


def pack_of(*objects: tuple[int, bytes], count: int | None = None) -> bytes:
    """A pack of objects by type."""
    out = b"PACK" + (2).to_bytes(4, "big")
    out += (len(objects) if count is None else count).to_bytes(4, "big")
    for type_, data in objects:
        out += header(type_, len(data)) + zlib.compress(data)
    return out + hashlib.sha1(out, usedforsecurity=False).digest()


def header(type_: int, size: int) -> bytes:
    first, size = type_ << 4 | size & 15, size >> 4
    out = bytearray([first])
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def test_what_is_longer_than_a_look_ahead() -> None:
    """Its end is found by who takes it apart; in a listing it has its size all the same."""
    noise = random.Random(3).randbytes(PEEK_LIMIT + 70_000)
    data = pack_of((3, noise), (3, FILES["b/text"]))
    taken = check(data, [noise, FILES["b/text"]])
    entries = list(list_members(taken.content, source_of(taken)))
    assert [len(noise), len(FILES["b/text"])] == [entry.size for entry in entries]
    assert noise == b"".join(open_member(taken.content, entries[0].path, source_of(taken)))
    really(data)


@pytest.mark.parametrize("count", [1, 3, 2**32 - 1])
def test_a_count_that_is_wrong(count: int) -> None:
    texts = [FILES["b/text"], FILES["b/again"]]
    check(pack_of(*((3, text) for text in texts), count=count), texts[:count])


def test_a_size_that_is_wrong() -> None:
    packed = zlib.compress(FILES["b/again"])
    for size in (0, 100, 2**40):
        data = pack_of((3, FILES["b/text"]), count=2)[:-20]
        check(data + header(3, size) + packed + bytes(900), [FILES["b/text"]])


def test_a_long_tree_is_content_and_a_short_one_is_not() -> None:
    rng = random.Random(4)
    long, short = (
        b"".join(b"100644 f%05d\0" % n + rng.randbytes(20) for n in range(count))
        for count in (400, 40)
    )
    taken = check(pack_of((2, long), (2, short), (3, FILES["b/text"])), [long])
    assert not taken.has(short)


def test_what_only_begins_like_a_pack() -> None:
    assert not is_header(b"PACK")
    assert not is_header(b"PACK\x00\x30\x01\x00\x40\x00\x00\x00")  # of a game
    for data in (pack_of(), pack_of()[:12] + bytes(5000), b"PACK\0\0\0\2\0\0\0\3" + b"\xff" * 9000):
        taken = take_apart(data + FILES["b/random"])
        assert taken is None or not taken.recipes


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_any_damage_is_rebuilt(made: Repository, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(
        made.data[: rng.randrange(len(made.data))] if rng.random() < 0.5 else made.data
    )
    for _ in range(rng.randrange(4)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    data += rng.randbytes(rng.choice((0, 20, 9000)))
    if take_apart(bytes(data)) is not None:
        check(bytes(data))
