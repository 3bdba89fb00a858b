"""The kernels of NPBench (Ziogas et al., ICS 2021) in NumPy's words, run by NumPy and by `ptir`.

Each is written anew from what it computes, as one function of a namespace ``xp``: ``numpy`` or
``ptir``. It writes into arrays by ``x[...] = v``, and gives back what it made.
"""
