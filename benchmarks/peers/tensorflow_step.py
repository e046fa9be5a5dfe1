#!/usr/bin/env python3
"""The training step of benchmarks/cnn_step.cpp in TensorFlow: the same network, batch, loss and update, on random
images that are in memory before the clock starts. See peers/frameworks, which holds it against ours.

    tensorflow_step.py single1|single2|mirrored [--serve] [--windows N] [--seconds S]

single1: one replica of 64 images, one thread. single2: one replica of 128, two threads in every operation.
mirrored: MirroredStrategy on two logical CPU devices, 64 images each."""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import windows  # noqa: E402

PER_REPLICA = 64


def make_model():
    return tf.keras.Sequential([
        tf.keras.Input((28, 28, 1)),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10),
    ])


def random_batch(images, seed):
    random = np.random.default_rng(seed)
    return (tf.constant(random.random((images, 28, 28, 1), dtype=np.float32)),
            tf.constant(random.integers(0, 10, images, dtype=np.int32)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration", choices=["single1", "single2", "mirrored"])
    windows.add_arguments(parser)
    arguments = parser.parse_args()
    replicas = 2 if arguments.configuration == "mirrored" else 1
    threads = 1 if arguments.configuration == "single1" else 2
    global_batch = PER_REPLICA * threads
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    devices = [f"/cpu:{index}" for index in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(devices) if replicas > 1 else tf.distribute.get_strategy()

    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(1e-3)
        optimizer.build(model.trainable_variables)
    assert model.count_params() == 2_770_634

    if replicas > 1:  # each device's part lies on it
        parts = strategy.experimental_distribute_values_from_function(
            lambda context: random_batch(PER_REPLICA, context.replica_id_in_sync_group))
    else:
        parts = random_batch(global_batch, 0)

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x, training=True))
            loss = tf.reduce_sum(losses) / global_batch
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def train_step(x, y):
        if replicas == 1:
            return replica_step(x, y)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica_step, args=(x, y)), axis=None)

    def step(count):
        for _ in range(count):
            loss = train_step(*parts)
        loss.numpy()

    before = float(train_step(*parts))
    step(20)
    assert float(train_step(*parts)) < before, "the step does not train"
    windows.measure(step, global_batch, f"TensorFlow {tf.__version__} {arguments.configuration}", arguments.serve,
                    arguments.windows, arguments.seconds)


if __name__ == "__main__":
    main()
