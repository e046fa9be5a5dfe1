"""Writes the state_dict of a network in PyTorch's format, and the network's outputs, computed by NumPy in float64: a
convolution, normalisation, a depthwise convolution, pooling, and two linear layers; and a sequence encoder with
attention."""
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
    "features.3.weight": weights(12, 1, 3, 3),  # two filters per channel
    "features.3.bias": weights(12),
    "classifier.0.weight": weights(5, 12 * 4 * 4),  # [out, in], in: a flattened [12, 4, 4]
    "classifier.0.bias": weights(5),
    "classifier.2.weight": weights(4, 5, dtype=numpy.float64),
    "classifier.2.bias": weights(4),
}
safetensors.numpy.save_file(state, folder + "state_dict.safetensors", metadata={"format": "pt"})
numpy.savez(folder + "state_dict.npz", **state)

s = {name: values.astype(numpy.float64) for name, values in state.items()}


def convolution(x, weight, bias, groups):
    """Convolves images [rows, channels, height, width] with zero padding of 1."""
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

# MultiheadAttention stores its three projections in one weight, [3 * width, width].
length, width, heads = 5, 6, 2
encoder = {
    "embedding.weight": weights(9, width),
    "norm.weight": weights(width) + 1,
    "norm.bias": weights(width),
    "attention.in_proj_weight": weights(3 * width, width),
    "attention.in_proj_bias": weights(3 * width),
    "attention.out_proj.weight": weights(width, width),
    "attention.out_proj.bias": weights(width),
}
safetensors.numpy.save_file(encoder, folder + "encoder.safetensors")
e = {name: values.astype(numpy.float64) for name, values in encoder.items()}
ids = random.integers(0, 9, (3, length))
x = e["embedding.weight"][ids]
normal = x - x.mean(-1, keepdims=True)
normal = normal / numpy.sqrt((normal**2).mean(-1, keepdims=True) + 1e-5) * e["norm.weight"] + e["norm.bias"]
projected = normal @ e["attention.in_proj_weight"].T + e["attention.in_proj_bias"]
query, key, value = (
    part.reshape(3, length, heads, width // heads).transpose(0, 2, 1, 3) for part in numpy.split(projected, 3, axis=-1)
)
scores = numpy.exp(query @ key.transpose(0, 1, 3, 2) / numpy.sqrt(width // heads))
attended = (scores / scores.sum(-1, keepdims=True) @ value).transpose(0, 2, 1, 3).reshape(3, length, width)
y = x + attended @ e["attention.out_proj.weight"].T + e["attention.out_proj.bias"]
numpy.savez(folder + "encoded.npz", x=ids.astype(numpy.float64), y=y)
