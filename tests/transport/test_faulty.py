"""The transport that is cut is cut at the byte that was asked for."""

import pytest

from cas.errors import TransportError
from cas.transport.memory import pair
from tests.transport.ends import limited, receive_all
from tests.transport.faulty import CutTransport

DATA = bytes(range(10))


@pytest.mark.parametrize("after", range(11))
@limited
async def test_sending(after: int) -> None:
    near, peer = pair()
    cut = CutTransport(near, after)
    if after < 10:
        with pytest.raises(TransportError):
            await cut.send(DATA)
    else:
        await cut.send(DATA)
        await cut.close()
    assert DATA[:after] == await receive_all(peer)


@pytest.mark.parametrize("after", range(11))
@limited
async def test_receiving(after: int) -> None:
    near, peer = pair()
    cut = CutTransport(near, after)
    await peer.send(DATA)
    received = await cut.receive() if after else b""
    assert DATA[:after] == received
    with pytest.raises(TransportError):
        await cut.receive()
