"""The compiled part, built from cas/native by maturin."""

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
