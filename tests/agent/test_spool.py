import os
import threading
from pathlib import Path

import pytest

from cas.agent.spool import Spool
from cas.errors import SourceError
from cas.ids import digest_of


def test_what_was_put_can_be_got_in_any_order(tmp_path: Path) -> None:
    objects = {digest_of(bytes([n])): bytes([n]) * (n * 1000) for n in range(100)}
    with Spool(os.fspath(tmp_path)) as spool:
        for id_, data in objects.items():
            spool.put(id_, data)
            spool.put(id_, b"another with the same id is not looked at")
        assert len(objects) == len(spool)
        for id_ in reversed(objects):
            assert objects[id_] == spool.get(id_)
            assert id_ in spool
        assert spool.get(digest_of(b"missing")) is None
        assert [] == list(tmp_path.iterdir())  # it has no name


def test_threads_may_share_it() -> None:
    with Spool() as spool:

        def work(start: int) -> None:
            for number in range(start, 400, 4):
                data = number.to_bytes(2, "big") * (number + 1)
                spool.put(digest_of(data), data)
                assert data == spool.get(digest_of(data))

        threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        everything = [number.to_bytes(2, "big") * (number + 1) for number in range(400)]
        assert everything == [spool.get(digest_of(data)) for data in everything]


def test_a_place_without_room_is_named() -> None:
    spool = Spool()
    with open("/dev/full", "wb", buffering=0) as full:
        os.dup2(full.fileno(), spool._file.fileno())
        with pytest.raises(SourceError, match="No space left"):
            spool.put(digest_of(b"x"), b"x")
    assert spool.get(digest_of(b"x")) is None
    spool.close()
