"""Tests of the functions of the array API standard, NumPy, JAX and torch."""
