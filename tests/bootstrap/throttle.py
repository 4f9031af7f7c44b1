"""A ProxyCommand that lets only so much out: throttle.py HOST PORT BYTES_A_SECOND."""

import os
import socket
import sys
import threading
import time

PIECE = 16 * 1024


def main(host: str, port: str, rate: str) -> None:
    """Carry both ways until either ends."""
    sock = socket.create_connection((host, int(port)))

    def down() -> None:
        while data := sock.recv(PIECE):
            os.write(1, data)
        os._exit(0)

    threading.Thread(target=down, daemon=True).start()
    while data := os.read(0, PIECE):
        time.sleep(len(data) / float(rate))
        sock.sendall(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
