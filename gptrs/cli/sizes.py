"""How sizes are written for people."""

from __future__ import annotations


def size_text(count: int) -> str:
    """``count`` bytes in the unit that leaves at most three digits before the point."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.95:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
