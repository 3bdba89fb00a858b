"""File format of an entry of the kernel cache: labelled with versions, checksummed.

    8 B magic | u32 format | u32 length of the label | u64 length of the payload | 32 B checksum |
    label (UTF-8) | payload

Numbers are little-endian. The checksum is BLAKE2b of label and payload, keyed with the cache key,
so that a file under another kernel's name is no entry either. The label says which versions made
the entry, for people and for `gptrs cache prune`; loading a kernel does not look at it.
"""

from __future__ import annotations

import hashlib
import struct

_MAGIC = b"gptrs-k\n"
_FORMAT = 2
_HEADER = struct.Struct("<8sIIQ32s")
_LONGEST_LABEL = 200  # bytes

HEAD_BYTES = _HEADER.size + _LONGEST_LABEL
"""As many bytes of a file hold its label."""


def pack(key: str, payload: bytes, label: str) -> bytes:
    """The file of ``payload`` under ``key``; a label that is too long is cut."""
    text = label.encode()[:_LONGEST_LABEL].decode(errors="ignore").encode()
    checksum = _checksum(key, text, payload)
    return _HEADER.pack(_MAGIC, _FORMAT, len(text), len(payload), checksum) + text + payload


def unpack(key: str, data: bytes) -> bytes:
    """The payload of a file. Raises `ValueError`, which says what is wrong with it."""
    if len(data) < _HEADER.size:
        raise ValueError(f"cut short: {len(data)} bytes, a header has {_HEADER.size}")
    magic, version, label, length, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError("begins with other bytes than an entry does")
    if version != _FORMAT:
        raise ValueError(f"format {version}, expected {_FORMAT}")
    if (found := len(data) - _HEADER.size) != label + length:
        raise ValueError(f"{found} bytes after the header, expected {label + length}")
    text = data[_HEADER.size : _HEADER.size + label]
    payload = data[_HEADER.size + label :]
    if checksum != _checksum(key, text, payload):
        raise ValueError("the checksum is not that of its contents and name")
    return payload


def label_of(head: bytes) -> str:
    """The label in the first `HEAD_BYTES` of a file; empty if it has none, or is no entry."""
    if len(head) < _HEADER.size:
        return ""
    magic, version, length, _, _ = _HEADER.unpack_from(head)
    if (magic, version) != (_MAGIC, _FORMAT) or length > _LONGEST_LABEL:
        return ""
    text = head[_HEADER.size : _HEADER.size + length].decode(errors="replace")
    return text if text.isprintable() else ""


def _checksum(key: str, label: bytes, payload: bytes) -> bytes:
    digest = hashlib.blake2b(label, digest_size=32, key=key.encode()[:64])
    digest.update(payload)
    return digest.digest()
