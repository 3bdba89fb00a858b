"""Attention softmax(q·kᵀ·scale + mask)·v: one fused kernel for prefill and decode.

| module | content |
|---|---|
| `kernel` | argument block, extent, choice of the row block, the kernel's outer loop |
| `blocks` | parameters of the code (`Head`), block sizes, scratch arrays on the stack |
| `work_item` | one row block of one group: its rows, its visible keys, setup and final scaling |
| `flash_attention` | the loop over key blocks of a work item |
| `scores` | scores q·kᵀ of a block, packing of keys, online softmax |
| `values` | weighted sums of a block's values |

What runs when: `gptrs.backends.faer.calls.attention` claims the composite ``attention``, compiles
one kernel per head size and mask flags, and adds one step to the plan. Its extent is (batch row,
key-value group, row block); `row_block_for` chooses the row block so that all threads have work.
For each work item the kernel loops over key blocks: with up to four queries (decode) keys are read
where they lie, with more (prefill) they are packed first. Keys and values are not copied by the
plan; they may be a KV cache with any strides.
"""
