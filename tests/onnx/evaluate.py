"""Checks the models in a folder with the package onnx, and prints their inputs and outputs. Runs them with onnxruntime:
"<name>.onnx" and "<name>.npz" with x give "<name>.out.npz" with y."""
import glob
import sys

import numpy
import onnx
import onnxruntime


def described(value):
    shape = [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
    return f"{value.name} {onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)} {shape}"


for path in sorted(glob.glob(sys.argv[1] + "/*.onnx")):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    print(described(model.graph.input[0]), "->", described(model.graph.output[0]))
    names = sorted(tensor.name for tensor in model.graph.initializer)
    assert len(names) == len(set(names))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = numpy.load(path[: -len("onnx")] + "npz")["x"]
    (y,) = session.run(["output"], {"input": x})
    (one,) = session.run(["output"], {"input": x[:1]})
    assert numpy.allclose(one, y[:1], 1e-5, 1e-5)
    (none,) = session.run(["output"], {"input": x[:0]})
    assert none.shape == (0,) + y.shape[1:]
    numpy.savez(path[: -len("onnx")] + "out.npz", y=y)
