"""Models of ONNX: ``gptrs.load("model.onnx")``.

| module | contents |
|---|---|
| `model` | `OnnxModel`: a file as a function of arrays |
| `graph` | graphs, functions and bodies, evaluated on Tensors |
| `values` | the values of a graph, and what of them is known |
| `constants` | what is computed while a graph is traced |
| `definitions` | operators that ONNX or a file defines by others |
| `table` | the table of operators, and how to enter one |
| `operators/` | what each operator means |
| `tensors` | tensors and dtypes of ONNX |

Needs the package ``onnx``, which reads the files and holds the definitions of composite operators.
"""

from gptrs.extras import needed_for

with needed_for("a model of ONNX"):
    from gptrs.onnx.model import OnnxModel, load_onnx

__all__ = ["OnnxModel", "load_onnx"]
