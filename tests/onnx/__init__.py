"""Models of ONNX: `gptrs.onnx`."""
