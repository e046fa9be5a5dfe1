"""Writes keras_fixtures.hpp: what layers of Keras compute in float64 on TensorFlow, for keras_test.cpp.

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
    """`which` separates the uses: 0 the input, 1 the gradient of the output, 2 and on the parameters."""
    i = np.arange(np.prod(shape), dtype=np.int64)
    return (((i * 37 + 11 + 17 * which) % 64 - 32) / 16.0).reshape(shape)


def gelu(x):
    """Keras' own has the square root of 1/2 in float32 only, whatever the type of x."""
    return 0.5 * x * (1.0 + tf.math.erf(x / np.sqrt(2.0)))


class SelfAttention(keras.layers.Layer):
    """Of a key_dim that is a square: Keras rounds the root to float32."""

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

    # TensorFlow's own kernels have no gradient of groups on the CPU; XLA's functions lose the last eight digits.
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


def main():
    text = ["// Written by keras_fixtures.py.", "#pragma once", "", "#include <vector>", "", "namespace keras {", ""]
    for name, (layer, shape) in CASES.items():
        text += lines(name, layer, shape)
    text += ["", "}  // namespace keras", ""]
    (pathlib.Path(__file__).parent / "keras_fixtures.hpp").write_text("\n".join(text))


main()
