"""PTIR: the intermediate representation, a pure SSA program over tensors.

Input: calls to ops, made by a user's Python function while it is traced. Output: `Program`. The
folder depends on no backend, file format or model.

| module | contents |
|---|---|
| `dims` | symbolic dimensions: integers, or polynomials in named symbols |
| `types` | dtypes, tensor types, the broadcasting rule |
| `program` | `Value`, `Param`, `Instruction`, `Program`, and the verifier |
| `dispatch` | the table `OPS` and the current interpreter (a context variable) |
| `tensor`, `parameter`, `operators` | `Tensor`, `Parameter`; their operators |
| `methods`, `tensor_methods` | methods that NumPy's arrays and torch's tensors have |
| `in_place`, `numpy_calls` | `x[key] = v`, `x += v`; the array protocols of NumPy and DLPack |
| `names` | names that do not exist, and the nearest that do |
| `op`, `op_arguments`, `operands` | ops: schema, binding and checks of the arguments of a call |
| `primitives`, `composites` | declaration of primitives, elementwise ops and composites |
| `ops/` | the op set, one family a file |
| `implementation`, `implementations/` | alternative implementations of composites |
| `interpreters` | `Eager` (compute now) and `Recorder` (trace into a program) |
| `control`, `closure_conversion`, `branch_types`, `operand_trees` | tracing of cond, while, scan |
| `printing`, `lexing`, `parsing` | program to Python text, and the text to a program |
| `pattern`, `rewrite`, `use_def` | rewrite rules, their matcher and driver, use-def chains |
| `sizes` | substitution of symbols, evaluation with the NumPy meaning of the ops |
| `checks`, `hints`, `traced` | checks shared by type rules, and the texts of errors |
| `kinds`, `scalar_rules` | how results depend on operands; one element of an elementwise op |
| `boxes`, `row_rules` | parts of arrays, and those of operands that a part of a result needs |
| `registry` | definitions and redefinitions of ops, and what they make stale |
| `sample_arrays` | sample values that rules are checked with |
| `extremes` | maximum and minimum of IEEE 754-2019 in NumPy |

A call to an op runs in this order: `op.Op.__call__` binds operands and attributes, the current
interpreter is looked up in `dispatch`, `Op.prepare` brings them into normal form, `Op.infer` runs
the type rule, then `Eager` evaluates the NumPy meaning or `Recorder` appends an `Instruction`.
"""

from gptrs.ir import printing as printing  # a program's text
