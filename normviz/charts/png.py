"""A matrix as a tiny indexed PNG: one pixel a cell, so a heatmap is one image, not 2,400 marks."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
INDEXED = 3  # the PNG colour type


def png(codes: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """PNG of `codes` [rows, columns], indices into `palette` [n <= 256, 4] (RGB, alpha).

    The first row is the top of the picture. Raises ValueError for an empty matrix, or for a palette
    of another shape.
    """
    if codes.ndim != 2 or codes.size == 0:
        raise ValueError(f"a picture needs rows and columns, got shape {codes.shape}")
    if palette.shape[1:] != (4,) or len(palette) > 256:
        raise ValueError(f"a palette has the shape [n <= 256, 4], got {palette.shape}")
    rows, columns = codes.shape
    # Each row starts with its filter byte: 0, as it is.
    raw = np.zeros((rows, columns + 1), np.uint8)
    raw[:, 1:] = codes
    return SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">2I5B", columns, rows, 8, INDEXED, 0, 0, 0)),
            _chunk(b"PLTE", palette[:, :3].tobytes()),
            _chunk(b"tRNS", palette[:, 3].tobytes()),
            _chunk(b"IDAT", zlib.compress(raw.tobytes(), 1)),
            _chunk(b"IEND", b""),
        )
    )


def data_uri(picture: bytes) -> str:
    """A PNG as the text an image mark takes as its address; nothing is fetched."""
    return "data:image/png;base64," + b64encode(picture).decode("ascii")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
