"""Writes keras_fixtures.hpp: the behaviour of Keras' Model, for model_fit_test.cpp: the order of callback hooks, and the
results of metrics and weighted metrics for weighted examples.

    python3 -m venv keras && keras/bin/pip install tensorflow-cpu
    keras/bin/python tests/train/keras_fixtures.py

The examples are the same exact fractions here and in the test. Written with TensorFlow 2.21.0 and Keras 3.15.1.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

keras = tf.keras
keras.backend.set_floatx("float64")

ROWS, FEATURES, CLASSES, BATCH = 12, 2, 3, 4
CLASS_WEIGHT = {0: 2.0, 1: 0.5, 2: 1.0}

i = np.arange(ROWS * FEATURES)
x = ((i * 37 + 11) % 64 - 32).reshape(ROWS, FEATURES) / 16.0
y = np.arange(ROWS) * 5 % 7 % CLASSES
sample_weight = (np.arange(ROWS) % 4 + 1) / 2.0


class Recorder(keras.callbacks.Callback):
    """Records the names of the hooks in the order of their calls, with the numbers of epochs and batches."""

    def __init__(self):
        super().__init__()
        self.record = []


def recording(hook, numbered):
    def method(self, *arguments, **_):
        self.record.append(f"{hook}{arguments[0]}" if numbered else hook)

    return method


for mode in "train", "test", "predict":
    for moment in "begin", "end":
        setattr(Recorder, f"on_{mode}_{moment}", recording(f"{mode}_{moment}", False))
        setattr(Recorder, f"on_{mode}_batch_{moment}", recording(f"{mode}_batch_{moment}", True))
        setattr(Recorder, f"on_epoch_{moment}", recording(f"epoch_{moment}", True))


def model():
    """Returns a dense layer whose parameters are exact fractions; its metrics and weighted metrics have the same names."""
    made = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(CLASSES)])
    kernel = ((np.arange(FEATURES * CLASSES) * 5) % 8 - 4).reshape(FEATURES, CLASSES) / 8.0
    made.set_weights([kernel, np.zeros(CLASSES)])
    made.compile(
        keras.optimizers.SGD(0.125), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
                          keras.metrics.SparseCategoricalCrossentropy(from_logits=True)])
    return made


def hooks(run):
    recorder = Recorder()
    run(model(), recorder)
    return " ".join(recorder.record)


def fit_with_validation(fitted, recorder):
    fitted.fit(x, y, batch_size=BATCH, epochs=2, validation_data=(x[:4], y[:4]), verbose=0, callbacks=[recorder])


def fit_that_stops(fitted, recorder):
    stop = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: setattr(fitted, "stop_training", batch == 1))
    fitted.fit(x, y, batch_size=BATCH, epochs=2, verbose=0, callbacks=[stop, recorder])


def evaluate(evaluated, recorder):
    evaluated.evaluate(x, y, batch_size=BATCH, verbose=0, callbacks=[recorder])


def predict(predicted, recorder):
    predicted.predict(x, batch_size=BATCH, verbose=0, callbacks=[recorder])


def logs(of):
    return ", ".join(f'{{"{name}", {float(values[-1] if isinstance(values, list) else values)!r}}}'
                     for name, values in of.items())


fitted = model()
history = fitted.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, class_weight=CLASS_WEIGHT,
                     validation_data=(x, y, sample_weight), verbose=0).history
evaluated = model().evaluate(x, y, batch_size=BATCH, sample_weight=sample_weight, verbose=0, return_dict=True)
trained = model().train_on_batch(x, y, sample_weight=sample_weight, return_dict=True)
trained_by_class = model().train_on_batch(x, y, class_weight=CLASS_WEIGHT, return_dict=True)
tested = model().test_on_batch(x, y, sample_weight=sample_weight, return_dict=True)

lines = [
    "// Written by keras_fixtures.py.",
    "#pragma once",
    "",
    "#include <string_view>",
    "#include <utility>",
    "",
    "namespace keras {",
    "",
    "// Calls of hooks.",
    f'constexpr std::string_view fit_with_validation = "{hooks(fit_with_validation)}";',
    f'constexpr std::string_view fit_that_stops = "{hooks(fit_that_stops)}";',
    f'constexpr std::string_view evaluate = "{hooks(evaluate)}";',
    f'constexpr std::string_view predict = "{hooks(predict)}";',
    "",
    "// Logs. For a fit, the logs of the last epoch.",
    f"constexpr std::pair<std::string_view, double> fitted[] = {{{logs(history)}}};",
    f"constexpr std::pair<std::string_view, double> evaluated[] = {{{logs(evaluated)}}};",
    f"constexpr std::pair<std::string_view, double> trained_on_batch[] = {{{logs(trained)}}};",
    f"constexpr std::pair<std::string_view, double> trained_by_class[] = {{{logs(trained_by_class)}}};",
    f"constexpr std::pair<std::string_view, double> tested_on_batch[] = {{{logs(tested)}}};",
    "",
    "}  // namespace keras",
    "",
]
path = pathlib.Path(__file__).with_suffix(".hpp")
path.write_text("\n".join(lines))
os.system(f"clang-format -i '{path}'")
