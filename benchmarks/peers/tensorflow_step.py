#!/usr/bin/env python3
"""The training steps of benchmarks/cnn_step.cpp and resnet_step.cpp in TensorFlow: same network, batch, loss and
update, on random images in memory. peers/frameworks compares them with ours.

    tensorflow_step.py single1|single2|mirrored [--network cnn|resnet] [--optimizer sgd|rmsprop|adam] [--xla]
                       [--serve] [--windows N] [--seconds S]

single1: one replica with 64 images, one thread. single2: one replica with 128 images, two threads in every operation.
mirrored: MirroredStrategy on two logical CPU devices with 64 images each. The ResNet has 32 images instead of 64. The
default optimizer is SGD for the CNN and Adam for the ResNet.

With --xla the step is one XLA program (jit_compile=True), and first_step_seconds is the time to trace, compile and run
it once. TensorFlow compiles for one CPU device only, so mirrored does not support --xla."""
import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import windows  # noqa: E402

PER_REPLICA = {"cnn": 64, "resnet": 32}
IMAGE = {"cnn": (28, 28, 1), "resnet": (32, 32, 3)}
PARAMETERS = {"cnn": 2_770_634, "resnet": 4_913_802}  # trainable parameters
OPTIMIZERS = {"sgd": tf.keras.optimizers.SGD, "rmsprop": tf.keras.optimizers.RMSprop, "adam": tf.keras.optimizers.Adam}


def residual(x, filters, stride):
    layers = tf.keras.layers
    body = layers.Conv2D(filters, 3, stride, padding="same")(x)
    body = layers.ReLU()(layers.BatchNormalization()(body))
    body = layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same")(body))
    shortcut = x if stride == 1 else layers.BatchNormalization()(layers.Conv2D(filters, 1, stride)(x))
    return layers.ReLU()(layers.Add()([body, shortcut]))


def make_resnet():
    layers = tf.keras.layers
    images = tf.keras.Input(IMAGE["resnet"])
    x = layers.Conv2D(64, 7, 2, padding="same")(images)
    x = layers.MaxPool2D(3, 2, padding="same")(layers.ReLU()(layers.BatchNormalization()(x)))
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = residual(x, filters, stride)
    return tf.keras.Model(images, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def make_model(network):
    if network == "resnet":
        return make_resnet()
    return tf.keras.Sequential([
        tf.keras.Input(IMAGE["cnn"]),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10),
    ])


def random_batch(images, shape, seed):
    random = np.random.default_rng(seed)
    return (tf.constant(random.random((images, *shape), dtype=np.float32)),
            tf.constant(random.integers(0, 10, images, dtype=np.int32)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration", choices=["single1", "single2", "mirrored"])
    parser.add_argument("--network", choices=list(PARAMETERS), default="cnn")
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), help="default: sgd for the CNN, adam for the ResNet")
    parser.add_argument("--xla", action="store_true", help="compile the step with XLA")
    windows.add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.xla and arguments.configuration == "mirrored":
        parser.error("mirrored does not support --xla: TensorFlow runs XLA programs on one CPU device only")
    optimizer_name = arguments.optimizer or {"cnn": "sgd", "resnet": "adam"}[arguments.network]
    replicas = 2 if arguments.configuration == "mirrored" else 1
    threads = 1 if arguments.configuration == "single1" else 2
    per_replica = PER_REPLICA[arguments.network]
    global_batch = per_replica * threads
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    devices = [f"/cpu:{index}" for index in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(devices) if replicas > 1 else tf.distribute.get_strategy()

    with strategy.scope():
        model = make_model(arguments.network)
        optimizer = OPTIMIZERS[optimizer_name](1e-3)
        optimizer.build(model.trainable_variables)
    assert sum(int(np.prod(one.shape)) for one in model.trainable_variables) == PARAMETERS[arguments.network]

    if replicas > 1:  # each device stores its part
        parts = strategy.experimental_distribute_values_from_function(
            lambda context: random_batch(per_replica, IMAGE[arguments.network], context.replica_id_in_sync_group))
    else:
        parts = random_batch(global_batch, IMAGE[arguments.network], 0)

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x, training=True))
            loss = tf.reduce_sum(losses) / global_batch
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function(jit_compile=arguments.xla or None)
    def train_step(x, y):
        if replicas == 1:
            return replica_step(x, y)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica_step, args=(x, y)), axis=None)

    def step(count):
        for _ in range(count):
            loss = train_step(*parts)
        loss.numpy()

    start = time.perf_counter()
    before = float(train_step(*parts))
    first_step = time.perf_counter() - start
    step(20)
    assert float(train_step(*parts)) < before, "the step does not train"
    way = " with XLA" if arguments.xla else ""
    windows.measure(step, global_batch,
                    f"TensorFlow {tf.__version__}{way} {arguments.configuration}, {arguments.network}, {optimizer_name}",
                    arguments.serve, arguments.windows, arguments.seconds, first_step_seconds=round(first_step, 3))


if __name__ == "__main__":
    main()
