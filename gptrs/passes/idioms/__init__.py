"""Idiom recognition: comparison of a part of a program with spellings of composites.

Used by `gptrs.passes.raising` in this order: `candidates` describes a possible place and a proposed
spelling, `patterns` traces the spelling at the types found there, `matcher` compares both by
structure, `attention` and `masks` read the operands that have no structure of their own.

| module | contents |
|---|---|
| `candidates` | `Site` (a possible root) and `Proposal` (a spelling with types and attributes) |
| `spellings` | spellings whose structure differs from the composite's definition |
| `patterns` | tracing of a spelling to a `Pattern`; `Hole`, a scalar attribute to solve for |
| `matcher` | structural comparison of a pattern with a program |
| `bindings` | the bindings of a match: operands, nodes, holes |
| `equivalence` | equality of types, axes and attributes up to axes of extent 1 |
| `products` | products as factors with powers: x / √v, x · rsqrt(v) |
| `attention` | proposals for attention: softmax between two matrix products |
| `rotary` | proposals for rotary: sums of products with tables |
| `masks` | the keys that a mask makes visible: causal, window, start and length |
| `affine_conditions` | conditions on positions as linear inequalities |
"""
