"""Installed packages on ``sys.path``, as folders of a test."""

from __future__ import annotations

from pathlib import Path


def install(site: Path, package: str, group: str, *entries: str, source: str = "") -> None:
    """A package with these entry points of a ``group`` and, if there is a ``source``, a module."""
    if source:
        (site / f"{package}.py").write_text(source, encoding="utf-8")
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "\n".join(entries)
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
