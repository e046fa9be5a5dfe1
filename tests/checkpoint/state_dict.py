"""Writes the state_dict of a network as PyTorch names it and lays it out, and the network's outputs, which NumPy computes in
float64: a convolution, normalisation, a convolution of each channel, pooling, and two linear layers."""
import sys

import numpy
import safetensors.numpy

folder = sys.argv[1] + "/"
random = numpy.random.default_rng(13)


def weights(*shape, dtype=numpy.float32):
    return random.uniform(-0.5, 0.5, shape).astype(dtype)


state = {
    "features.0.weight": weights(6, 3, 3, 3, dtype=numpy.float16),  # [out, in, height, width]
    "features.0.bias": weights(6),
    "features.1.weight": weights(6) + 1,
    "features.1.bias": weights(6),
    "features.1.running_mean": weights(6),
    "features.1.running_var": weights(6) + 1,
    "features.1.num_batches_tracked": numpy.array(100),
    "features.3.weight": weights(12, 1, 3, 3),  # two filters for each of 6 channels
    "features.3.bias": weights(12),
    "classifier.0.weight": weights(5, 12 * 4 * 4),  # [out, in], of a flattened [12, 4, 4]
    "classifier.0.bias": weights(5),
    "classifier.2.weight": weights(4, 5, dtype=numpy.float64),
    "classifier.2.bias": weights(4),
}
safetensors.numpy.save_file(state, folder + "state_dict.safetensors", metadata={"format": "pt"})
numpy.savez(folder + "state_dict.npz", **state)

s = {name: values.astype(numpy.float64) for name, values in state.items()}


def convolution(x, weight, bias, groups):
    """Of images [rows, channels, height, width] with a border of one zero."""
    rows, _, height, width = x.shape
    filters, channels = weight.shape[:2]
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = numpy.empty((rows, filters, height, width))
    for f in range(filters):
        first = f // (filters // groups) * channels
        for i in range(height):
            for j in range(width):
                window = padded[:, first : first + channels, i : i + 3, j : j + 3]
                y[:, f, i, j] = (window * weight[f]).sum((1, 2, 3)) + bias[f]
    return y


x = random.uniform(-1, 1, (3, 3, 8, 8))
y = convolution(x, s["features.0.weight"], s["features.0.bias"], 1)
column = lambda name: s["features.1." + name][:, None, None]
y = (y - column("running_mean")) / numpy.sqrt(column("running_var") + 1e-5) * column("weight") + column("bias")
y = numpy.maximum(y, 0)
y = convolution(y, s["features.3.weight"], s["features.3.bias"], 6)
y = y.reshape(3, 12, 4, 2, 4, 2).max((3, 5))
y = y.reshape(3, -1) @ s["classifier.0.weight"].T + s["classifier.0.bias"]
y = numpy.maximum(y, 0) @ s["classifier.2.weight"].T + s["classifier.2.bias"]
numpy.savez(folder + "expected.npz", x=x.transpose(0, 2, 3, 1), y=y)
