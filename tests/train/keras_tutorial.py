"""Writes keras_tutorial.json: the test accuracies of the guide's Model.fit tutorial in Keras. benchmarks/tutorial_accuracy
compares them with examples/17_fit_with_callbacks.cpp. Takes some minutes on two cores.

    python3 -m venv keras && keras/bin/pip install tensorflow-cpu
    keras/bin/python tests/train/keras_tutorial.py

The program is the same: network, optimizer, schedule, 12 epochs, two replicas with 64 images each, and a shuffle buffer of
10,000 images. Fashion-MNIST is read from Debian's package dataset-fashion-mnist, or from the folder DIST_FASHION_MNIST_DIR.
"""

import gzip
import json
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

keras = tf.keras
FOLDER = pathlib.Path(os.environ.get("DIST_FASHION_MNIST_DIR") or "/usr/share/datasets/fashion-mnist")
REPLICAS, BATCH_OF_REPLICA, EPOCHS = 2, 64, 12
SEEDS = 1, 2, 3


def elements(name, header):
    compressed = FOLDER / f"{name}.gz"
    content = gzip.decompress(compressed.read_bytes()) if compressed.exists() else (FOLDER / name).read_bytes()
    return np.frombuffer(content, np.uint8, offset=header)


def examples(split):
    images = elements(f"{split}-images-idx3-ubyte", 16).reshape(-1, 28, 28, 1)
    labels = elements(f"{split}-labels-idx1-ubyte", 8)
    return tf.data.Dataset.from_tensor_slices((images, labels)).map(
        lambda image, label: (tf.cast(image, tf.float32) / 255, tf.cast(label, tf.int32)))


def decay(epoch):
    return 1e-3 if epoch < 3 else 1e-4 if epoch < 7 else 1e-5


def test_accuracy(seed):
    keras.utils.set_random_seed(seed)
    strategy = tf.distribute.MirroredStrategy([f"/cpu:{replica}" for replica in range(REPLICAS)])
    batch = BATCH_OF_REPLICA * strategy.num_replicas_in_sync
    train = examples("train").cache().shuffle(10_000, seed=seed).batch(batch)
    test = examples("t10k").batch(batch)
    with strategy.scope():
        model = keras.Sequential([
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ])
        model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      optimizer=keras.optimizers.Adam(), metrics=["accuracy"])
    model.fit(train, epochs=EPOCHS, callbacks=[keras.callbacks.LearningRateScheduler(decay)], verbose=2)
    return float(model.evaluate(test, verbose=0, return_dict=True)["accuracy"])


cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
result = {
    "written_by": f"tests/train/keras_tutorial.py with Keras {keras.__version__} on TensorFlow {tf.__version__}",
    "test_accuracy_by_seed": {str(seed): round(test_accuracy(seed), 4) for seed in SEEDS},
}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")
