"""Keys and certificates in PEM, as files or as text (KIP-651)."""

from __future__ import annotations

import base64
import re

_BLOCK = re.compile(r"(-----BEGIN ([A-Z0-9 ]+)-----)(.*?)(-----END \2-----)", re.DOTALL)


def pem_text(text: str) -> str:
    """The text with the line breaks that OpenSSL expects: in a ``.properties`` file they may have got lost.

    Raises ValueError.
    """
    blocks = []
    for begin, _, body, end in _BLOCK.findall(text):
        # A key that is encrypted in the old way has headers, which must stay as they are.
        lines = body.strip() if ":" in body else "\n".join(body.split())
        blocks.append(f"{begin}\n{lines}\n{end}\n")
    if not blocks:
        raise ValueError("there is no -----BEGIN … in it")
    return "".join(blocks)


def pem_of(kind: str, der: bytes) -> str:
    """A block of this kind (``CERTIFICATE``, ``PRIVATE KEY``)."""
    text = base64.b64encode(der).decode()
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"
