"""NumPy's generalised universal functions (LAPACK, pocketfft), called without Python.

| module | content |
|---|---|
| `inner_loop` | the address of the compiled loop of a ufunc for given dtypes |
| `kernel` | the kernel that calls such a loop over a batch |
"""
