"""Shared by tests: samples, models, programs, and ways to run the package."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
