"""The public test suite of the Python array API standard as a judge of ``ptir``.

`__main__` runs the suite (https://github.com/data-apis/array-api-tests), `compiled` is the
namespace in which every call is compiled, `deviations` lists the tests that are known to fail.
"""
