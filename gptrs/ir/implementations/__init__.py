"""Other ways to compute composites. Importing this package registers them."""

from gptrs.ir.implementations import attention, norm, softmax

__all__ = ["attention", "norm", "softmax"]
