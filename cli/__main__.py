"""`python -m cli`, and how the agent on this machine is started: by the path of this file, so that
it is the very same cas as ours, whatever PATH and the working directory hold."""

import sys
from pathlib import Path


def _main() -> None:
    here = Path(__file__).resolve().parent
    if sys.path and Path(sys.path[0] or ".").resolve() == here:
        del sys.path[0]  # else our `table` or `main` could be taken for somebody else's
    if str(here.parent) not in sys.path:
        sys.path.insert(0, str(here.parent))

    from cli.main import main

    main()


if __name__ == "__main__":
    _main()
