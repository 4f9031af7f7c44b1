"""Names of files in JSON: they may be any bytes, and none of them is to be lost."""

from __future__ import annotations

import base64


def name_fields(key: str, name: bytes) -> dict[str, str]:
    """A name for JSON: `{key: text}`, and for one that is no UTF-8 also `key_b64`, its bytes in
    base64; the text is only for people then."""
    try:
        return {key: name.decode("utf-8")}
    except UnicodeDecodeError:
        raw = base64.b64encode(name).decode("ascii")
        return {key: name.decode("utf-8", "replace"), f"{key}_b64": raw}
