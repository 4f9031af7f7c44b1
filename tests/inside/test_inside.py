"""What lies in archives in a store is listed and read without rebuilding them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.codec import registry
from cas.entry import Content, Kind
from cas.errors import CasError, FormatError, NotHeldError
from cas.ids import Digest, digest_of
from cas.inside.members import find_members, list_members, open_member
from tests.rebuild.archives import DictSource
from tests.unpack.carry import JOINERS, CarrySplitters
from tests.unpack.taking import Taken, take_apart

SEEDS = st.integers(0, 2**32)
MTIME = 1_700_000_000


@pytest.fixture(autouse=True, scope="module")
def _toys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for codec, place in JOINERS.items():
            patch.setitem(registry.JOINERS, codec, place)
        yield


class CountingSource(DictSource):
    """Knows which chunks were fetched."""

    def __init__(self, taken: Taken) -> None:
        super().__init__()
        self.held = taken.chunks | taken.objects
        self.fetched: set[Digest] = set()

    def chunk(self, chunk_id: Digest) -> bytes:
        self.fetched.add(chunk_id)
        return super().chunk(chunk_id)


def taken(data: bytes) -> Taken:
    found = take_apart(data)
    assert found is not None
    return found


def tar_of(files: dict[str, bytes], dialect: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=dialect) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode, info.uid = len(data), MTIME, 0o640, 7
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Unseekable(io.BytesIO):
    """Has a zip written to it with sizes behind the members."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise OSError("not here")

    def tell(self) -> int:
        raise OSError("not here")


def zip_of(files: dict[str, bytes], out: io.BytesIO | None = None) -> bytes:
    out = out or io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number, (name, data) in enumerate(files.items()):
            info = zipfile.ZipInfo(name, (2023, 11, 14, 22, 13, 20))
            info.external_attr = 0o100640 << 16
            is_stored = number % 3 == 2 and not isinstance(out, Unseekable)
            info.compress_type = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return out.getvalue()


def some_files(seed: int = 1, count: int = 6) -> dict[str, bytes]:
    rng = random.Random(seed)
    files = {"empty": b"", "tiny": b"few"}
    for number in range(count):
        size = rng.choice([100, 300, 3000, 40_000])
        text = rng.randbytes(size // 8).hex().encode()
        files[f"d{number % 2}/{number}"] = text if number % 2 else rng.randbytes(size)
    return files


def read(archive: Taken, path: bytes, name: bytes = b"") -> bytes:
    return b"".join(open_member(archive.content, path, CountingSource(archive), name=name))


def check(data: bytes, files: dict[str, bytes], name: bytes = b"") -> None:
    """All of `files`, and all that they hold, are found and come out right, singly and together."""
    archive = taken(data)
    source = CountingSource(archive)
    paths = [entry.path.decode() for entry in list_members(archive.content, source, name=name)]
    assert set(files) == set(paths)
    assert len(paths) == len(files)
    together = {
        found.entry.path.decode(): b"".join(found.data())
        for found in find_members(archive.content, source, name=name)
        if not found.entry.path.decode().endswith("!")
    }
    for path, expected in files.items():
        if "!/" not in path:
            assert expected == together[path]
        assert expected == read(archive, path.encode(), name)


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_is_listed(dialect: int) -> None:
    files = some_files()
    archive = taken(tar_of(files, dialect))
    entries = {e.path.decode(): e for e in list_members(archive.content, CountingSource(archive))}
    assert list(files) == list(entries)
    one = entries["d0/2"]
    assert (Kind.FILE, len(files["d0/2"]), 0o640, 7) == (one.kind, one.size, one.mode, one.uid)
    assert MTIME * 10**9 == one.mtime_ns
    check(tar_of(files, dialect), files)


def test_listing_fetches_no_content() -> None:
    layer = gzip.compress(tar_of(some_files(2)), mtime=0)
    archive = taken(
        tar_of({**some_files(3), "layer.tar.gz": layer, "x.zip": zip_of(some_files(4))})
    )
    source = CountingSource(archive)
    paths = [entry.path for entry in list_members(archive.content, source)]
    assert b"layer.tar.gz!/d1/1" in paths
    assert b"x.zip!/d1/1" in paths
    assert source.fetched <= set(archive.objects)


def test_opening_fetches_what_is_opened() -> None:
    archive = taken(tar_of({f"{n}": random.Random(n).randbytes(9000) for n in range(9)}))
    source = CountingSource(archive)
    data = b"".join(open_member(archive.content, b"5", source))
    assert source.fetched - set(archive.objects) == {digest_of(data)}


def test_what_is_in_archives_in_archives() -> None:
    inner = some_files(5)
    held = {
        "tar.gz": gzip.compress(tar_of(inner), mtime=0),
        "tar.xz": lzma.compress(tar_of(inner)),
        "tar.bz2": bz2.compress(tar_of(inner)),
        "plain.tar": tar_of(inner),
        "some.zip": zip_of(inner),
        "streamed.zip": zip_of(inner, Unseekable()),
        "two.gz": gzip.compress(tar_of(inner)[:5000]) + gzip.compress(tar_of(inner)[5000:]),
    }
    members = {f"{name}!/{path}": data for name in held for path, data in inner.items()}
    for data in (tar_of(held), gzip.compress(tar_of(held)), zip_of(held),
                 zip_of(held, Unseekable())):  # fmt: skip
        check(data, {**held, **members})


def test_a_compressed_file_has_one_member() -> None:
    text = random.Random(1).randbytes(30_000).hex().encode()
    check(gzip.compress(text, mtime=0), {"notes.txt": text}, b"notes.txt.gz")
    check(gzip.compress(text, mtime=0), {"content": text})
    data = gzip.compress(text, mtime=0)
    check(tar_of({"notes.txt.gz": data}), {"notes.txt.gz": data, "notes.txt.gz!/notes.txt": text})


class NoDeflate(CarrySplitters):
    """As if nobody could split deflate streams."""

    def deflate(self) -> None:  # type: ignore[override]  # the toys always can
        return None


def test_a_stream_without_an_end_ends_the_listing() -> None:
    files = {"a": random.Random(1).randbytes(8000), "b": bytes(5000)}
    streamed = lzma.compress(zip_of(files, Unseekable()))
    archive = take_apart(streamed, NoDeflate())
    assert archive is not None
    assert [b"a"] == [e.path for e in list_members(archive.content, CountingSource(archive))]
    with pytest.raises(FormatError, match="nothing says where it ends"):
        read(archive, b"a")
    known = take_apart(zip_of(files), NoDeflate())
    assert known is not None
    assert list(files.values()) == [read(known, path.encode()) for path in files]


def test_a_name_leads_to_the_file_it_links_to(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(70_000)
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "name").hardlink_to(tmp_path / "file")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "sparse").write_bytes(b"begin")
    with (tmp_path / "sparse").open("r+b") as sparse:
        sparse.seek(3 * 2**20)
        sparse.write(b"end")
    subprocess.run(["tar", "-cSf", "a.tar", "file", "link", "name", "sparse"], cwd=tmp_path,
                   check=True)  # fmt: skip
    outer = tar_of({"a.tar": (tmp_path / "a.tar").read_bytes()})
    for archive, prefix in ((taken((tmp_path / "a.tar").read_bytes()), b""),
                            (taken(outer), b"a.tar!/")):  # fmt: skip
        entries = {e.path: e for e in list_members(archive.content, CountingSource(archive))}
        assert Kind.SYMLINK is entries[prefix + b"link"].kind
        assert b"file" == entries[prefix + b"link"].target == entries[prefix + b"name"].link
        assert data == read(archive, prefix + b"name")
        assert (tmp_path / "sparse").read_bytes() == read(archive, prefix + b"sparse")
        for path in (b"link", b"none"):
            with pytest.raises(NotHeldError, match="in the archive"):
                read(archive, prefix + path)


def test_what_only_begins_like_an_archive_is_a_file() -> None:
    """It lies right before one, and in the same piece of skeleton."""
    layer = gzip.compress(tar_of(some_files(2)), mtime=0)
    files: dict[str, bytes] = {}
    for head in (lzma.compress(b""), bz2.compress(b"x"), layer[:10], b"\x78\x9c",
                 b"\x28\xb5\x2f\xfd", b"PK\x03\x04" + bytes(40), b"!<arch>\n"):  # fmt: skip
        files[f"{len(files)}.like"] = head
        files[f"{len(files)}.gz"] = layer
    inner = {f"{name}!/{path}": data for name, gz in files.items() if gz is layer
             for path, data in some_files(2).items()}  # fmt: skip
    check(tar_of(files), {**files, **inner})
    check(zip_of(files), {**files, **inner})


def test_there_is_nothing_in_a_plain_file() -> None:
    archive = taken(tar_of(some_files()))
    data = next(iter(archive.chunks.values()))
    assert [] == list(list_members(Content(len(data), digest_of(data), 1), CountingSource(archive)))


def nested(rng: random.Random, depth: int) -> tuple[bytes, dict[str, bytes]]:
    """Some archive, with what can be found in it."""
    files = some_files(rng.randrange(2**32), rng.randrange(4))
    files["large enough"] = rng.randbytes(600)
    found: dict[str, bytes] = {}
    for number in range(rng.randrange(3) if depth else 0):
        files[f"in{number}"], inner = nested(rng, depth - 1)
        found |= {f"in{number}!/{path}": data for path, data in inner.items()}
    if rng.random() < 0.4:
        return zip_of(files), {**files, **found}
    squeezers: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, bz2.compress, lzma.compress]
    return rng.choice(squeezers)(tar_of(files)), {**files, **found}


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_any_archive_can_be_looked_into(seed: int) -> None:
    data, files = nested(random.Random(seed), 2)
    archive = take_apart(data)
    if archive is not None:
        paths = [e.path.decode() for e in list_members(archive.content, CountingSource(archive))]
        assert sorted(files) == sorted(paths)
        for path in random.Random(seed).sample(sorted(files), min(5, len(files))):
            assert files[path] == read(archive, path.encode())


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_a_damaged_skeleton_is_an_error_at_most(seed: int) -> None:
    """It cannot happen, since chunks are hashed; a peer can make it up, though."""
    rng = random.Random(seed)
    archive = taken(nested(rng, 1)[0] + bytes(5000))
    source = CountingSource(archive)
    for id_ in archive.objects.keys() - set(archive.content.parts):
        data = bytearray(source.held[id_])
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        source.held[id_] = bytes(data)
    try:
        for found in find_members(archive.content, source):
            if rng.random() < 0.5:
                for _ in found.data():
                    pass
    except CasError:
        pass
