"""Selection of the driver: ``GPTRS_DRIVER``, or the fastest one that this machine supports."""

from __future__ import annotations

from gptrs import settings
from gptrs.errors import SettingError
from gptrs.kernels.compiler.shield import shielded
from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.pool_driver import PoolDriver
from gptrs.kernels.driver.worker_pool import supported
from gptrs.locks import late_import_that_logs, new_lock


def current_driver() -> Driver:
    """The driver that ``GPTRS_DRIVER`` names, or the best one here; the same object each time.

    Where there is no pool, that is Numba's, but without a compilation of each loop by Numba.
    """
    name = settings.driver()
    if name not in _made:
        _made[name] = _driver(name or ("pool" if supported() else "portable"))
    return _made[name]


_made: dict[str, Driver] = {}  # by the value of GPTRS_DRIVER
_making = new_lock()  # the first plans may run in several threads at once


def _driver(name: str) -> Driver:
    with _making:
        if name not in _made:
            _made[name] = _make_driver(name)
        return _made[name]


def _make_driver(name: str) -> Driver:
    if name == "pool":
        if not supported():
            problem = "GPTRS_DRIVER='pool': the pool needs a futex (Linux on 64-bit x86 or Arm)"
            raise SettingError(problem, fix="unset GPTRS_DRIVER or set it to numba")
        return PoolDriver()
    return shielded(lambda: _prange_driver(loops=name == "numba"))


def _prange_driver(*, loops: bool) -> Driver:
    with late_import_that_logs():  # Numba takes 0.4 s to import and is of use to this driver alone
        from gptrs.kernels.driver.prange import PrangeDriver

    return PrangeDriver(loops=loops)
