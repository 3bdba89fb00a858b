"""PTIR: the intermediate representation. Knows no backend, no file, no model."""

from gptrs.ir import printing as printing  # a program's text
