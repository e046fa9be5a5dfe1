"""Writes keras_fixtures.hpp: results of Keras' layers in float64 on TensorFlow, for keras_test.cpp, and losses of
trained networks, for keras_training_test.cpp.

    python3 -m venv keras && keras/bin/pip install tensorflow-cpu
    keras/bin/python tests/nn/keras_fixtures.py

Inputs, parameters and the gradients of outputs are the same exact fractions here and in the test. Written with
TensorFlow 2.21.0 and Keras 3.15.1.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

keras = tf.keras
keras.backend.set_floatx("float64")


def fractions(shape, which):
    """`which` is 0 for the input, 1 for the gradient of the output, 2 and more for the parameters."""
    i = np.arange(np.prod(shape), dtype=np.int64)
    return (((i * 37 + 11 + 17 * which) % 64 - 32) / 16.0).reshape(shape)


def gelu(x):
    """Gelu in the type of x: Keras rounds the square root of 1/2 to float32."""
    return 0.5 * x * (1.0 + tf.math.erf(x / np.sqrt(2.0)))


def gelu_tanh(x):
    """Gelu's approximation in the type of x: TensorFlow rounds its constants to float32."""
    return 0.5 * x * (1.0 + tf.math.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


class SelfAttention(keras.layers.Layer):
    """Attention; key_dim must be a square, because Keras rounds its root to float32."""

    def __init__(self, causal, **options):
        super().__init__()
        self.causal = causal
        self.attention = keras.layers.MultiHeadAttention(**options)

    def build(self, shape):
        self.attention.build(shape, shape)

    def call(self, x):
        return self.attention(x, x, use_causal_mask=self.causal)


CASES = {
    "conv2d_strided": (keras.layers.Conv2D(3, 3, strides=2), (6, 5, 2)),
    "conv2d_same": (keras.layers.Conv2D(2, 3, strides=2, padding="same"), (6, 5, 2)),
    "conv2d_groups": (keras.layers.Conv2D(4, 2, groups=2), (3, 4, 4)),
    "conv1d": (keras.layers.Conv1D(3, 3, strides=2), (8, 2)),
    "conv1d_same": (keras.layers.Conv1D(2, 4, strides=2, padding="same"), (7, 3)),
    "conv2d_transpose": (keras.layers.Conv2DTranspose(3, 3, strides=2), (3, 2, 2)),
    "conv2d_transpose_same": (keras.layers.Conv2DTranspose(2, 3, strides=2, padding="same"), (3, 4, 2)),
    "conv2d_transpose_narrow": (keras.layers.Conv2DTranspose(2, 2, strides=3), (2, 3, 1)),
    "up_sampling2d": (keras.layers.UpSampling2D(3), (2, 3, 2)),
    "max_pool1d_same": (keras.layers.MaxPooling1D(3, 2, padding="same"), (6, 2)),
    "average_pool1d_same": (keras.layers.AveragePooling1D(3, 2, padding="same"), (6, 2)),
    "depthwise_conv2d": (keras.layers.DepthwiseConv2D(3, depth_multiplier=2, padding="same"), (4, 3, 2)),
    "max_pool2d_same": (keras.layers.MaxPooling2D(3, 2, padding="same"), (6, 5, 2)),
    "average_pool2d": (keras.layers.AveragePooling2D(2), (5, 4, 2)),
    "average_pool2d_same": (keras.layers.AveragePooling2D(3, 2, padding="same"), (6, 5, 2)),
    "global_average_pool2d": (keras.layers.GlobalAveragePooling2D(), (3, 2, 3)),
    "global_max_pool2d": (keras.layers.GlobalMaxPooling2D(), (3, 2, 3)),
    "tanh": (keras.layers.Activation("tanh"), (16,)),
    "sigmoid": (keras.layers.Activation("sigmoid"), (16,)),
    "silu": (keras.layers.Activation("silu"), (16,)),
    "gelu": (keras.layers.Activation(gelu), (16,)),
    "gelu_tanh": (keras.layers.Activation(gelu_tanh), (16,)),
    "leaky_relu": (keras.layers.LeakyReLU(negative_slope=0.25), (16,)),
    "elu": (keras.layers.ELU(), (16,)),
    "elu_of_half": (keras.layers.ELU(alpha=0.5), (16,)),
    "softplus": (keras.layers.Activation("softplus"), (16,)),
    "hard_silu": (keras.layers.Activation("hard_silu"), (16,)),
    "dense_gelu": (keras.layers.Dense(3, activation=gelu), (4,)),
    "attention": (SelfAttention(False, num_heads=2, key_dim=4), (4, 5)),
    "causal_attention": (SelfAttention(True, num_heads=1, key_dim=4), (3, 2)),
    "layer_normalization": (keras.layers.LayerNormalization(), (3, 5)),
    "group_normalization": (keras.layers.GroupNormalization(2), (3, 2, 4)),
    "softmax": (keras.layers.Softmax(), (2, 5)),
}


def numbers(values):
    return ", ".join(repr(float(value)) for value in np.asarray(values).ravel())


def lines(name, layer, shape, rows=2):
    x = tf.constant(fractions((rows, *shape), 0))
    layer.build(x.shape)
    layer.set_weights([fractions(weight.shape, 2 + i) for i, weight in enumerate(layer.weights)])

    # TensorFlow's kernels have no gradient of groups on the CPU; XLA's functions are less precise by eight digits.
    @tf.function(jit_compile="groups" in name)
    def compute(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            loss = tf.reduce_sum(y * fractions(tuple(y.shape), 1))
        return y, tape.gradient(loss, [x, *layer.trainable_weights])

    y, (dx, *gradients) = compute(x)
    parts = {"y": y, "dx": dx, **{f"gradient_{i}": gradient for i, gradient in enumerate(gradients)}}
    return [f"inline const std::vector<double> {name}_{part}{{{numbers(values)}}};" for part, values in parts.items()]


def convolution(filters, window, stride=1):
    return keras.layers.Conv2D(filters, window, strides=stride, padding="same")


def normalized(*parts):
    return [*parts, keras.layers.BatchNormalization()]


def block(filters, stride, shortcut):
    body = normalized(convolution(filters, 3, stride)) + [keras.layers.ReLU()] + normalized(convolution(filters, 3))
    return [(body, shortcut), keras.layers.ReLU()]


# A list is a sequence of layers, a tuple is the sum of branches.
NETWORKS = {
    "cnn": (
        [
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(10),
        ],
        (12, 12, 1),
    ),
    "residual_network": (
        [
            *normalized(convolution(4, 7, 2)),
            keras.layers.ReLU(),
            keras.layers.MaxPooling2D(3, 2, padding="same"),
            *block(4, 1, []),
            *block(8, 2, normalized(convolution(8, 1, 2))),
            *block(16, 2, normalized(convolution(16, 1, 2))),
            *block(32, 2, normalized(convolution(32, 1, 2))),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ],
        (32, 32, 3),
    ),
}


def scattered(count, which):
    """Numbers from -1 to 1 in steps of 2^-11, scattered by the last step of MurmurHash3; used like `fractions`."""
    h = np.arange(count, dtype=np.uint32) + np.uint32(which * 1000003 % 2**32)
    h = (h ^ (h >> 16)) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * np.uint32(0xC2B2AE35)
    h = h ^ (h >> 16)
    return ((h >> 20).astype(np.float64) - 2048.0) / 2048.0


def layers_of(part):
    if isinstance(part, (list, tuple)):
        return [layer for inner in part for layer in layers_of(inner)]
    return [part]


def computed(part, x):
    if isinstance(part, list):
        for inner in part:
            x = computed(inner, x)
        return x
    if isinstance(part, tuple):
        return sum(computed(branch, x) for branch in part)
    return part(x, training=True) if isinstance(part, keras.layers.BatchNormalization) else part(x)


def losses(network, shape, rows=8, steps=50):
    """Returns the losses of steps on one batch by Adam with nn::Adam's float32 hyper-parameters."""
    x = tf.constant(scattered(rows * np.prod(shape), 0).reshape(rows, *shape))
    labels = tf.constant(np.arange(rows) * 3 % 10)
    computed(network, x)
    weights = [weight for layer in layers_of(network) for weight in layer.trainable_weights]
    for which, weight in enumerate(weights):
        if weight.path.endswith("kernel"):
            fan_in = np.prod(weight.shape[:-1])
            scale = 2.0 ** np.floor(np.log2(np.sqrt(6.0 / fan_in)))
            weight.assign(scattered(np.prod(weight.shape), 1 + which).reshape(weight.shape) * scale)
    single = lambda value: float(np.float32(value))
    optimizer = keras.optimizers.Adam(single(1e-3), single(0.9), single(0.999), single(1e-7))
    values = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            logits = computed(network, x)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        optimizer.apply(tape.gradient(loss, [weight.value for weight in weights]), weights)
        values.append(loss)
    return values


def main():
    text = ["// Written by keras_fixtures.py.", "#pragma once", "", "#include <vector>", "", "namespace keras {", ""]
    for name, (layer, shape) in CASES.items():
        text += lines(name, layer, shape)
    for name, (network, shape) in NETWORKS.items():
        text.append(f"inline const std::vector<double> {name}_losses{{{numbers(losses(network, shape))}}};")
    text += ["", "}  // namespace keras", ""]
    (pathlib.Path(__file__).parent / "keras_fixtures.hpp").write_text("\n".join(text))


main()
