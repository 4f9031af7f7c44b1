"""The compiled part, built from cas/native by maturin."""

from collections.abc import Sequence

def cpu_features() -> dict[str, bool]:
    """Which instruction sets that speed up hashing this processor has.

    The names are those of /proc/cpuinfo: on x86-64 sha_ni, aes, pclmulqdq, ssse3, sse4_1, sse4_2,
    avx2, bmi2; on aarch64 sha2, aes, pmull, crc32, asimd. On other processors the dict is empty.
    """

def crc32c(data: bytes | bytearray | memoryview, value: int = 0, /) -> int:
    """The CRC-32C (Castagnoli, RFC 3720) of data, going on from value.

    value is the CRC of the bytes before data, 0 at the start. bytes are read in place, anything
    else with a buffer is copied once; from 64 KiB on the interpreter lock is let go meanwhile.
    Raises TypeError if data has no buffer, OverflowError unless 0 <= value < 2**32.
    """

def sha256_pairs() -> bool:
    """Whether sha256s hashes two messages in the time of one; else hashlib is faster."""

class Sha256:
    """The SHA-256 of what has come so far."""

    def digest(self) -> bytes:
        """The 32 bytes of it; more may come after."""

def sha256s(
    data: bytes, start: int, lengths: Sequence[int], running: Sequence[Sha256], /
) -> list[bytes]:
    """The digests of the parts of data with these lengths, end to end from start.

    Each of running, no one twice, goes on with all of those parts; no other thread may use one
    meanwhile. From 8 KiB on the interpreter lock is let go. Raises ValueError if that is more than
    there is of data.
    """

def sort_records(data: bytes | bytearray | memoryview, size: int, /) -> bytes:
    """The records of size bytes that lie end to end in data, in ascending order of their bytes.

    The interpreter lock is let go meanwhile. What is sorted already, as a whole or in runs, takes
    less time. Raises ValueError unless data is so many whole records.
    """

class Status:
    """What stat(2) says of a name; the fields are those of `os.stat_result`."""

    st_mode: int
    st_uid: int
    st_gid: int
    st_nlink: int
    st_dev: int
    st_ino: int
    st_rdev: int
    st_size: int
    st_blocks: int
    st_mtime_ns: int
    st_ctime_ns: int

    def identity(self, with_inode: bool, /) -> bytes:
        """Bytes that differ when anything does that changes with a file or its attributes.

        The time of access is not in them, the inode number only if with_inode. What may have other
        names, which its device and inode number tell apart, has those two in any case.
        """

def look(directory: int, name: bytes, /) -> Status:
    """What name in an open directory is itself, if a link never what it points to.

    Raises OSError.
    """

def look_at_open(file: int, /) -> Status:
    """What an open file is. Raises OSError."""

def look_into(
    parent: int, name: bytes, flags: int, most: int, prefix: bytes, /
) -> tuple[list[tuple[bytes, Status | int | None]], list[int]]:
    """What is in the directory name of an open one: a pair for each name, in byte order.

    That is the name, with prefix before it, and what it is, or the errno that says why that is not
    known, or None when there are more names than most. The list of numbers are the places of pairs
    that are directories, or not known. The directory is opened with flags besides O_DIRECTORY,
    read, and closed. Raises OSError when that fails.
    """

class Scout:
    """Lists directories ahead of who walks, in a thread of its own: one and all below it, each
    before those in it, in byte order of their names. Some it leaves out."""

    def __init__(
        self, directory: int, path: bytes, flags: int, quiet: int, user: int, most: int, /
    ) -> None:
        """Begin with an open directory, whose path is path. Directories are opened with flags; with
        quiet too, where they are the user's own or the user is 0. One with more names than most is
        left out. Raises OSError."""

    def take(
        self, path: bytes, prefix: bytes, /
    ) -> tuple[tuple[list[tuple[bytes, Status | int | None]], list[int]], float] | None:
        """If the next listing is of the directory path: what look_into would give, and how many
        seconds old it is."""

    def close(self) -> None:
        """List no more."""

def describe(items: list[tuple[bytes, Status]], /) -> tuple[bytes, bytes, list[int]]:
    """The paths of items, with a zero byte after each; their identities, with inode numbers, end
    to end; and the devices that they are on, each once."""

def place_files(
    contents: bytes,
    files: Sequence[tuple[int, bytes, int, tuple[int, tuple[int, int] | None, int | None]]],
    /,
) -> list[int]:
    """Make files, each whole or not at all; 0 for each, or the errno that says why it is not there.

    A file is the descriptor of its directory, its name there, how many bytes it has of contents, in
    which one lies after the other, and its metadata: mode, ids of user and group, and time in
    nanoseconds since 1970, None for what is to be left as it is. It is written without a name and
    then linked. EEXIST means that the name was taken, EOPNOTSUPP that files without a name cannot
    be made there. Raises ValueError if the contents end before the files do.
    """

def dress_directories(
    directories: Sequence[tuple[int, bytes, tuple[int, tuple[int, int] | None, int | None]]], /
) -> list[int]:
    """Put metadata, as for place_files, on directories; 0 for each, or an errno.

    A directory is the descriptor of the one it lies in, and its name there, which is not followed
    if it is a link.
    """

def sync_file_system(file: int, /) -> None:
    """Wait until the file system of an open file has all that was written to it on its disk.

    Raises OSError, also if something could not be written.
    """

class Splitter:
    """A deflate stream (RFC 1951), cut into spans as it comes.

    A span ends at the first end of a block where it has span_size plain bytes or more (or 4096
    blocks); inside a block only when it has twice as many. span_size is from 1 KiB to 4 MiB. Raises
    ValueError if it is not.
    """

    def __init__(self, span_size: int = 1048576, /) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> list[Span]:
        """Take the next bytes of the stream, all of them, and give the spans complete by then.

        The interpreter lock is let go meanwhile. What does not go on as a deflate stream is no
        error here: see failed.
        """
    def finish(self) -> Span | None:
        """The span of what was fed and is in none yet, if it has plain bytes: when no more follows.

        What makes up no whole token is not in it. May be called once, and nothing fed after it.
        """
    finished: bool
    """Whether the stream's end was read."""
    unused: bytes
    """What was fed and lies behind the stream's end."""
    position: int
    """Whole bytes of the stream that the spans given out are of."""
    phase: int
    """How many bits of the next byte they are of, 0 to 7."""
    failed: str | None
    """What makes it no deflate stream, and where. Spans before that were given out all the same."""
    window: bytes
    """The last 32 KiB of plain bytes of the spans given out: the history of the next one."""

class Span:
    """A span of a deflate stream. Immutable; may be used from any thread."""

    plain: bytes
    plain_size: int
    compressed_bits: int
    last: bool
    """Whether the stream ends with it."""
    def analyse(self, config: Config | None = None, /) -> bytes:
        """Side information: what rebuild needs besides the plain bytes, proved by rebuilding.

        Where nothing foretells the span well enough it holds the bits themselves, and so never is
        more than two bytes longer than they are. Without config one is chosen for this span alone.
        Where config does badly, a known encoder is looked for that does better: see config_of. The
        interpreter lock is let go meanwhile.
        """

class Config:
    """What the encoder of a stream is like: how its spans are analysed. Immutable.

    bytes(config) is its written form, and Config(data) reads one. Raises ValueError for any other.
    """

    def __init__(self, data: bytes, /) -> None: ...
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def choose(spans: list[Span], /) -> Config:
    """How best to foretell the tokens of a stream that begins with spans.

    The interpreter lock is let go meanwhile.
    """

def config_of(side: bytes, /) -> Config | None:
    """How a span was analysed that has this side information: how to go on with the next one.

    None if it holds the bits themselves. Raises ValueError if side is no side information.
    """

def rebuild(
    history: bytes | bytearray | memoryview,
    plain: bytes | bytearray | memoryview,
    side: bytes,
    /,
) -> tuple[bytes, int]:
    """The compressed bits of a span, and how many of the last byte are used, 1 to 7, or 0 for all.

    history is the 32 KiB of plain bytes before the span, or all there are; plain its own. Bits of
    the first byte that belong to the span before are zero, so that the two can be ORed. The
    interpreter lock is let go meanwhile. Raises ValueError if side is not side information of a
    span of these bytes, or not of this version.
    """

class Replay:
    """An encoder of a fixed version, whose output depends on its settings and input alone.

    It is fed in pieces, in one thread at a time; the interpreter lock is let go while it works.
    Settings that the encoder refuses, and its own failures, raise ValueError.
    """

    @staticmethod
    def lzma2(preset: int, extreme: bool, dict_size: int, /) -> Replay:
        """Raw LZMA2 as liblzma 5.8.4 writes it, with the settings of `xz -preset` (and `-e`)."""

    @staticmethod
    def bzip2(level: int, /) -> Replay:
        """A stream as bzip2 1.0.8 writes it, of block size level (1 to 9)."""

    @staticmethod
    def zstd(
        level: int,
        window_log: int,
        long: bool,
        jobs: bool,
        checksum: bool,
        content_size: int | None,
        /,
    ) -> Replay:
        """A frame as libzstd 1.5.7 writes it; window_log 0 is what the level says.

        jobs: as the command does unless it is told `--single-thread`.
        """

    def write(self, data: bytes, /) -> bytes:
        """What the encoder writes now that data follows."""

    def finish(self) -> bytes:
        """What it still has to write, the end last; nothing may be called after that."""
