"""The faer backend: native CPU kernels from claimed composites and fused loops.

From a lowered program to a call, in this order:

1. `custom_calls` (passes): instructions that kernels of `calls/` implement become `custom_call`s
2. `gptrs.backends.fusion`: the rest becomes a `FusedProgram` of regions and single instructions
3. `expansions`, `schedule`, `joint_regions`: the list of `PlanStep`s: calls, regions, control
   flow, reference steps
4. `buffer_assignment`: an `Allocation` for each value: argument, result, constant, arena
5. compilation of all kernels (`FaerPlan.__init__`)
6. at the sizes of a call: `step_templates` (kernels, argument blocks and chunks of each distinct
   step), then `binding` (one step table, arena offsets, relocations of addresses)
7. `run`: addresses are patched, parameters are loaded, the native driver runs the step table

Steps 1 to 5 happen once per program, 6 once per sizes and number of threads, 7 in each call.

| module | contents |
|---|---|
| `backend` | `FaerBackend` |
| `custom_calls` | claims, and the backend's own passes |
| `product_operands` | operands of products as kernels read them |
| `shallow_products` | products of depth 2 and 3 as sums in loops |
| `calls/` | one class per kernel family: match, compile, bind |
| `expansions` | ops as others with kernels: windows, short extremes |
| `schedule` | the steps of a program in order |
| `element_types` | loads, stores and numbers of each dtype, in kernel source |
| `scalars`, `scalar_functions` | elementwise ops on one element, in kernel source |
| `expression_writer` | the expressions of a region as source |
| `loop_writer`, `tile_writer` | the loops around them: by rows, by tiles of rows |
| `reduction_writer` | the reductions inside a row |
| `neighbour_writer` | loops that read neighbours, by blocks of half a cache line |
| `blocked_writer` | the same in blocks, where operands lie in different orders |
| `joint_regions` | regions of equal loops as one with several results |
| `overwritten_operands` | regions whose result takes the memory of an operand |
| `strided_copy` | regions that compute nothing, as copies |
| `render`, `argument_block` | kernel source and argument block of a region |
| `control_kernels`, `control_writer`, `control_source` | branches and loops as one kernel |
| `control_steps`, `control_lines` | the steps of their bodies, and the lines of the source |
| `loop_products` | small products in the kernels of loops |
| `interchange`, `interchange_writer` | loops whose iterations go element by element |
| `region_updates`, `region_concats` | regions that write a block of another array |
| `buffer_assignment`, `arena` | memory planning: allocations, offsets, arenas |
| `result_memory` | memory of large results, reused from freed ones |
| `step_templates`, `binding`, `bound` | the step table at given sizes |
| `joint_steps` | consecutive products of the same few rows as one native step |
| `prepared_memory` | rows that several products pack are packed once |
| `stage_chains` | consecutive stages of a stencil as one, in blocks of planes |
| `plan`, `run`, `launch` | `FaerPlan`; one call; what a native call needs for it |
| `native_loops`, `repeat_layout` | other loops as steps of the plan, repeated by the driver |
| `control`, `repeat` | branches, and loops that Python has a part in |
| `user_kernels` | kernels that users registered |
| `packed_weights`, `weight_packing`, `weight_compression`, `slabs` | packed forms of weights |
| `report` | the report of a plan for `explain` |
"""
