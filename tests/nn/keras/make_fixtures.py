#!/usr/bin/env python3
"""Writes Keras' results to the headers of this folder, for comparison in the tests.

  python3 -m venv keras && keras/bin/pip install tensorflow-cpu
  keras/bin/python tests/nn/keras/make_fixtures.py && clang-format -i tests/nn/keras/*.hpp

Everything is computed in float64. Hyper-parameters are those of our float fields, so 0.1 is float32(0.1).
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import keras
import numpy as np
import tensorflow as tf

keras.backend.set_floatx("float64")
FOLDER = pathlib.Path(__file__).parent


def single(number):
    """Returns a number rounded to float, as in the library's float members, for computation in float64."""
    return np.float64(np.float32(number))


def literal(value):
    """Returns the C++ initializer of a number or a nested list of numbers."""
    if np.ndim(value) == 0:
        return repr(float(value))
    return "{" + ", ".join(literal(one) for one in np.asarray(value).tolist()) + "}"


def write(name, body):
    (FOLDER / f"{name}.hpp").write_text(
        f"// Made by make_fixtures.py with Keras {keras.__version__} on TensorFlow {tf.__version__}.\n"
        "#pragma once\n\n#include <array>\n#include <cstddef>\n\n"
        f"namespace keras_{name} {{\n\n{body}\n}}  // namespace keras_{name}\n"
    )


# A kernel [5, 3] and a bias [3]. Element i of their concatenation starts at sin(i + 1). Its gradient in step t, from 0, is
# cos(0.37 i + t) (1 + i % 4), or 0 for every seventh element.
KERNEL = 15
ELEMENTS = 18
STEPS = 10


def train(make):
    element = np.arange(ELEMENTS)
    start = np.sin(element + 1.0)
    kernel = keras.Variable(start[:KERNEL].reshape(5, 3), name="kernel")
    bias = keras.Variable(start[KERNEL:], name="bias")
    optimizer = make()
    optimizer.build([kernel, bias])
    for step in range(STEPS):
        gradient = np.cos(0.37 * element + step) * (1 + element % 4) * (element % 7 != 0)
        parts = [gradient[:KERNEL].reshape(5, 3), gradient[KERNEL:]]
        optimizer.apply([tf.constant(part) for part in parts], [kernel, bias])
    return np.concatenate([kernel.numpy().ravel(), bias.numpy()])


def with_singles(kind, **options):
    return lambda: kind(**{name: single(o) if type(o) is float else o for name, o in options.items()})


OPTIMIZERS = {
    "sgd": with_singles(keras.optimizers.SGD, learning_rate=0.1),
    "sgd_momentum": with_singles(keras.optimizers.SGD, learning_rate=0.1, momentum=0.9),
    "sgd_nesterov": with_singles(keras.optimizers.SGD, learning_rate=0.1, momentum=0.9, nesterov=True),
    "rmsprop": with_singles(keras.optimizers.RMSprop, learning_rate=0.01, rho=0.9, epsilon=1e-7),
    "rmsprop_centered": with_singles(
        keras.optimizers.RMSprop, learning_rate=0.01, rho=0.8, momentum=0.5, epsilon=1e-7, centered=True
    ),
    "adagrad": with_singles(
        keras.optimizers.Adagrad, learning_rate=0.1, initial_accumulator_value=0.1, epsilon=1e-7
    ),
    "adadelta": with_singles(keras.optimizers.Adadelta, learning_rate=1.0, rho=0.95, epsilon=1e-7),
    "nadam": with_singles(keras.optimizers.Nadam, learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
    "adam": with_singles(keras.optimizers.Adam, learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
    "adam_amsgrad": with_singles(
        keras.optimizers.Adam, learning_rate=0.01, beta_1=0.8, beta_2=0.9, epsilon=1e-7, amsgrad=True
    ),
    "adam_w": with_singles(
        keras.optimizers.AdamW, learning_rate=0.01, weight_decay=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-7
    ),
    "lamb": with_singles(keras.optimizers.Lamb, learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
    "lamb_with_options": with_singles(
        keras.optimizers.Lamb,
        learning_rate=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-3,
        weight_decay=0.25,
        clipnorm=2.0,
        use_ema=True,
        ema_momentum=0.75,
        ema_overwrite_frequency=3,
    ),
    "lion": with_singles(keras.optimizers.Lion, learning_rate=0.01, beta_1=0.9, beta_2=0.99),
    "lion_with_options": with_singles(
        keras.optimizers.Lion, learning_rate=0.01, beta_1=0.5, beta_2=0.75, weight_decay=0.25, global_clipnorm=2.0
    ),
}


def optimizers():
    body = (
        "inline constexpr std::size_t kernel_elements = %d;\ninline constexpr std::size_t elements = %d;\n"
        "inline constexpr std::size_t steps = %d;\nusing Weights = std::array<double, elements>;\n\n"
        % (KERNEL, ELEMENTS, STEPS)
    )
    for name, make in OPTIMIZERS.items():
        body += f"inline constexpr Weights {name}{literal(train(make))};\n"
    write("optimizers", body)


SCHEDULES = {
    "exponential_decay": keras.optimizers.schedules.ExponentialDecay(single(0.1), 4, single(0.5)),
    "exponential_staircase": keras.optimizers.schedules.ExponentialDecay(single(0.1), 4, single(0.5), staircase=True),
    "cosine_decay": keras.optimizers.schedules.CosineDecay(single(0.1), 8),
    "cosine_decay_to_alpha": keras.optimizers.schedules.CosineDecay(single(0.1), 8, alpha=single(0.1)),
    "cosine_decay_after_warm_up": keras.optimizers.schedules.CosineDecay(
        single(0.01), 6, alpha=single(0.1), warmup_target=single(0.1), warmup_steps=5
    ),
    "piecewise_constant": keras.optimizers.schedules.PiecewiseConstantDecay(
        [3, 7], [single(0.1), single(0.01), single(0.001)]
    ),
}
RATES = 14


def schedules():
    body = f"using Rates = std::array<double, {RATES}>;  // of steps 0, 1, …\n\n"
    for name, schedule in SCHEDULES.items():
        rates = [float(keras.ops.convert_to_numpy(schedule(step))) for step in range(RATES)]
        body += f"inline constexpr Rates {name}{literal(rates)};\n"
    write("schedules", body)


# Four examples of three outputs. The loss is the mean over the examples, the weighted loss the sum of the weighted losses
# over 4. The gradient belongs to the weighted loss.
LOGITS = 3 * np.sin(1.7 * np.arange(12.0) + 0.3).reshape(4, 3)
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
PROBABILITIES[3] = [0.0, 0.25, 0.75]  # one of them is clipped
NUMBERS = np.cos(0.9 * np.arange(12.0)).reshape(4, 3) * 2
YES_AND_NO = (np.arange(12) % 5 % 2).reshape(4, 3).astype(float)
COUNTS = (np.arange(12) % 3).reshape(4, 3).astype(float)
ONE_HOT = np.eye(3)[[2, 0, 1, 0]]
SPREAD = np.array([[0.5, 0.25, 0.25], [0.0, 0.125, 0.875], [1.0, 0.0, 0.0], [0.375, 0.375, 0.25]])
WEIGHTS = np.array([0.5, 2.0, 0.0, 1.25])

K = keras.losses


class LogCosh(K.Loss):
    """Keras' formula in the type of its arguments: K.LogCosh rounds the logarithm of 2 to float32."""

    def call(self, targets, outputs):
        difference = outputs - targets
        return tf.reduce_mean(difference + tf.math.softplus(-2.0 * difference) - np.log(2.0), axis=-1)


LOSSES = {
    "sparse_logits": (K.SparseCategoricalCrossentropy(from_logits=True), LOGITS, np.array([2.0, 0.0, 1.0, 0.0])),
    "sparse_probabilities": (K.SparseCategoricalCrossentropy(), PROBABILITIES, np.array([2.0, 0.0, 1.0, 0.0])),
    "categorical_logits": (K.CategoricalCrossentropy(from_logits=True), LOGITS, SPREAD),
    "categorical_logits_smoothed": (
        K.CategoricalCrossentropy(from_logits=True, label_smoothing=single(0.1)), LOGITS, ONE_HOT),
    "categorical_probabilities": (K.CategoricalCrossentropy(), 2 * PROBABILITIES, SPREAD),
    "categorical_probabilities_smoothed": (K.CategoricalCrossentropy(label_smoothing=single(0.1)), PROBABILITIES, ONE_HOT),
    "binary_logits": (K.BinaryCrossentropy(from_logits=True), LOGITS, YES_AND_NO),
    "binary_logits_smoothed": (K.BinaryCrossentropy(from_logits=True, label_smoothing=single(0.2)), LOGITS, YES_AND_NO),
    "binary_probabilities": (K.BinaryCrossentropy(), PROBABILITIES, YES_AND_NO),
    "binary_probabilities_smoothed": (K.BinaryCrossentropy(label_smoothing=single(0.2)), PROBABILITIES, YES_AND_NO),
    "mean_squared_error": (K.MeanSquaredError(), LOGITS, NUMBERS),
    "mean_absolute_error": (K.MeanAbsoluteError(), LOGITS, NUMBERS),
    "huber": (K.Huber(), LOGITS, NUMBERS),
    "huber_wide": (K.Huber(delta=single(2.5)), LOGITS, NUMBERS),
    "hinge": (K.Hinge(), LOGITS, YES_AND_NO),
    "hinge_of_signs": (K.Hinge(), LOGITS, 2 * YES_AND_NO - 1),
    "log_cosh": (LogCosh(), LOGITS, NUMBERS),
    "poisson": (K.Poisson(), PROBABILITIES, COUNTS),
    "mean_squared_logarithmic_error": (K.MeanSquaredLogarithmicError(), LOGITS, NUMBERS),
    "kl_divergence": (K.KLDivergence(), PROBABILITIES, SPREAD),
    "cosine_similarity": (K.CosineSimilarity(), LOGITS, NUMBERS),
}


def losses():
    body = (
        "/// Targets are [4, 3]; for sparse losses the first 4 are labels.\n"
        "struct Case {\n  std::array<double, 12> outputs;\n  std::array<double, 12> targets;\n  double loss;\n"
        "  double weighted_loss;\n  std::array<double, 12> weighted_gradient;\n};\n"
        f"inline constexpr std::array<double, 4> weights{literal(WEIGHTS)};\n\n"
    )
    for name, (loss, outputs, targets) in LOSSES.items():
        variable = tf.Variable(outputs)
        given = tf.constant(targets)
        with tf.GradientTape() as tape:
            weighted = loss(given, variable, sample_weight=tf.constant(WEIGHTS))
        case = [
            literal(outputs.ravel()),
            literal(np.pad(targets.ravel(), (0, 12 - targets.size))),
            literal(loss(given, variable).numpy()),
            literal(weighted.numpy()),
            literal(tape.gradient(weighted, variable).numpy().ravel()),
        ]
        body += f"inline constexpr Case {name}{{{', '.join(case)}}};\n"
    write("losses", body)


# Eight examples of three outputs, in two batches of five and three.
SCORES = np.array(
    [[0.9, 0.5, 0.25], [0.1, 0.8, 0.8], [0.0, 1.0, 0.75], [0.3, 0.3, 0.3], [0.6, 0.2, 0.7], [0.5, 0.4, 0.05],
     [0.15, 0.95, 0.45], [1.0, 0.0, 0.65]]
)
ANSWERS = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 1, 0], [0, 1, 0], [1, 0, 1]], dtype=float)
LABELS = np.array([0.0, 2, 1, 0, 2, 1, 1, 2])
ROW_WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0, 1.25, 3.0, 0.75, 1.0])

M = keras.metrics
METRICS = {
    "binary_accuracy": (lambda: M.BinaryAccuracy(), SCORES, ANSWERS),
    "binary_accuracy_above": (lambda: M.BinaryAccuracy(threshold=0.75), SCORES, ANSWERS),
    "categorical_accuracy": (lambda: M.CategoricalAccuracy(), SCORES, np.eye(3)[LABELS.astype(int)]),
    "sparse_categorical_accuracy": (lambda: M.SparseCategoricalAccuracy(), SCORES, LABELS),
    "top_2": (lambda: M.TopKCategoricalAccuracy(k=2), SCORES, np.eye(3)[LABELS.astype(int)]),
    "sparse_top_2": (lambda: M.SparseTopKCategoricalAccuracy(k=2), SCORES, LABELS),
    "precision": (lambda: M.Precision(), SCORES, ANSWERS),
    "precision_above": (lambda: M.Precision(thresholds=0.75), SCORES, ANSWERS),
    "recall": (lambda: M.Recall(), SCORES, ANSWERS),
    "recall_above": (lambda: M.Recall(thresholds=0.75), SCORES, ANSWERS),
    "f1": (lambda: M.F1Score(average="micro", threshold=0.5), SCORES, ANSWERS),
    "auc": (lambda: M.AUC(), SCORES, ANSWERS),
    "auc_of_5": (lambda: M.AUC(num_thresholds=5), SCORES, ANSWERS),
    "auc_of_logits": (lambda: M.AUC(from_logits=True), 4 * SCORES - 2, ANSWERS),
    "pr_auc": (lambda: M.AUC(curve="PR"), SCORES, ANSWERS),
    "pr_auc_of_5": (lambda: M.AUC(curve="PR", num_thresholds=5), SCORES, ANSWERS),
}


def metrics():
    body = (
        "/// Targets are [8, 3]; for sparse metrics the first 8 are labels.\n"
        "struct Case {\n  std::array<double, 24> outputs;\n  std::array<double, 24> targets;\n  double result;\n"
        "  double weighted_result;\n};\n"
        f"inline constexpr std::array<double, 8> weights{literal(ROW_WEIGHTS)};\n\n"
    )

    def result(make, outputs, targets, weights):
        metric = make()
        if "TopK" in type(metric).__name__:
            outputs = outputs.astype(np.float32)  # TensorFlow's in_top_k supports no other type
        for part in (slice(0, 5), slice(5, 8)):
            metric.update_state(targets[part], outputs[part], sample_weight=None if weights is None else weights[part])
        return float(keras.ops.convert_to_numpy(metric.result()))

    for name, (make, outputs, targets) in METRICS.items():
        case = [
            literal(outputs.ravel()),
            literal(np.pad(targets.ravel(), (0, 24 - targets.size))),
            literal(result(make, outputs, targets, None)),
            literal(result(make, outputs, targets, ROW_WEIGHTS)),
        ]
        body += f"inline constexpr Case {name}{{{', '.join(case)}}};\n"
    matrices = [
        literal(tf.math.confusion_matrix(LABELS, SCORES.argmax(axis=1), weights=weights, dtype=tf.float64).numpy().ravel())
        for weights in (None, ROW_WEIGHTS)
    ]
    body += f"inline constexpr std::array<double, 9> confusion_matrix{matrices[0]};\n"
    body += f"inline constexpr std::array<double, 9> weighted_confusion_matrix{matrices[1]};\n"
    write("metrics", body)


if __name__ == "__main__":
    metrics()
    losses()
    optimizers()
    schedules()
