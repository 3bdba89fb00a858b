"""Lossless compression of packed weight panels, decoded in registers by the kernels that read them.

| module | content |
|---|---|
| `format` | the container: header, table, blocks, exceptions; decoding of a block |
| `encoder` | the kernel that compresses panels, block by block |
| `decoder` | decoding inside the product kernels: panel by panel, software-pipelined |

Why: a product of few rows (decode) takes as long as its weights take to come from memory. The
sign-and-exponent byte of most weights is one of sixteen values, so that 28 bits hold an f32 and 12
a bf16, without loss.

What runs when: when a weight of 2¹⁸ elements or more is packed,
`gptrs.backends.faer.weight_compression` chooses the table, runs the encoder on its panels and lists
the exceptions; with too many of them the panels stay as they are, in the same container. The
product kernels (`gptrs.kernels.gemm.packed_gemv`, `blocked`) and `gptrs.kernels.rowwise.take` test
the container's header at run time and decode, or read plain panels. Needs a vector level with a
byte table lookup (`Isa.lookup`); ``GPTRS_COMPRESSED_WEIGHTS=0`` turns it off.
"""
