#!/usr/bin/env python3
"""Writes the behaviour of TensorFlow's parameter servers and ClusterCoordinator to coordinator.hpp, for comparison in a test.

  python3 -m venv tensorflow && tensorflow/bin/pip install tensorflow-cpu
  tensorflow/bin/python tests/coordinator/tensorflow/make_fixtures.py
  clang-format -i tests/coordinator/tensorflow/coordinator.hpp

Two workers and two parameter servers are processes on this machine. They end with this one.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent
LIMIT = 300  # seconds for all of it


class Job:
    """The processes of a cluster, each of which can be killed and restarted."""

    def __init__(self, workers, servers):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(workers + servers)]
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
        for each in sockets:
            each.close()
        self.cluster = {"worker": addresses[:workers], "ps": addresses[workers:]}
        self.processes = {}
        for role, listed in self.cluster.items():
            for index in range(len(listed)):
                self.start(role, index)
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(self.cluster), rpc_layer="grpc")
        partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
        self.strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)

    def start(self, role, index):
        config = {"cluster": self.cluster, "task": {"type": role, "index": index}}
        self.processes[role, index] = subprocess.Popen(
            [sys.executable, __file__], env={**os.environ, "TF_CONFIG": json.dumps(config)})

    def kill(self, role, index):
        self.processes[role, index].send_signal(signal.SIGKILL)
        self.processes[role, index].wait(10)

    def end(self):
        for process in self.processes.values():
            process.kill()


def serve():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                                  protocol="grpc", start=True)
    parent = os.getppid()
    while os.getppid() == parent:  # server.join() outlives its coordinator
        time.sleep(0.1)
    del server


def outcome(call):
    """Returns the exception of a call, in words independent of TensorFlow."""
    try:
        call()
    except (tf.errors.CancelledError, tf.errors.AbortedError):
        return "cancelled"
    except tf.errors.UnavailableError:
        return "unavailable"
    except tf.errors.InvalidArgumentError:
        return "the function's error"
    return "nothing"


def placement(job):
    """Returns rows and servers of the shards of variables created one after another."""
    made = []
    with job.strategy.scope():
        for shape in SHAPES:
            variable = tf.Variable(tf.zeros(shape))
            shards = getattr(variable, "variables", [variable])
            made.append([(shard.shape[0] if shape else 1, tf.DeviceSpec.from_string(shard.device).task)
                         for shard in shards])
    return made


SHAPES = [[5, 3], [], [4], [1, 7], [3], [2, 2]]


def errors(job):
    """Returns the exceptions, call by call."""
    coordinator = job.coordinator

    @tf.function
    def fail():
        return tf.strings.to_number("no number")

    @tf.function
    def succeed():
        return tf.constant(1.0)

    @tf.function
    def work(count):
        total = tf.constant(0.0)
        for _ in tf.range(count):
            total = total + 1.0
        return total

    seen = []

    def see(what, call):
        seen.append((what, outcome(call)))

    def settle():  # until nothing runs and the error has come
        time.sleep(2)

    coordinator.schedule(succeed).fetch()
    failed = coordinator.schedule(fail)
    settle()
    see("fetch of what failed", failed.fetch)
    see("join after an error", coordinator.join)
    see("join again", coordinator.join)
    coordinator.schedule(fail)
    settle()
    see("schedule after an error", lambda: coordinator.schedule(succeed))
    value = coordinator.schedule(succeed)
    see("join after schedule has thrown", coordinator.join)
    see("fetch of what was scheduled then", value.fetch)
    coordinator.schedule(fail)
    settle()
    see("done after an error", coordinator.done)
    see("done again", coordinator.done)
    values = [coordinator.schedule(work, args=(300_000,)) for _ in range(4)]
    coordinator.schedule(fail)
    waiting = [coordinator.schedule(work, args=(300_000,)) for _ in range(20)]
    see("join with functions that wait behind one that fails", coordinator.join)
    see("fetch of one that ran before", values[0].fetch)
    see("fetch of the last that waited", waiting[-1].fetch)
    return seen


def losses(job):
    """Returns the outcomes of functions and datasets of killed processes."""
    coordinator = job.coordinator
    with job.strategy.scope():
        begun = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def work(iterator):
        begun.assign_add(1)
        number = next(iterator)
        total = tf.constant(0.0)
        for _ in tf.range(3_000_000):
            total = total + 1.0
        with tf.control_dependencies([total]):
            return tf.identity(number)

    @tf.function
    def take(iterator):
        return next(iterator)

    @tf.function
    def count():
        begun.assign_add(1)

    numbers = iter(coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.range(1000)))
    seen = []
    values = [coordinator.schedule(work, args=(numbers,)) for _ in range(2)]
    while begun.numpy() < 2:
        time.sleep(0.05)
    job.kill("worker", 1)
    seen.append(("join where a worker was killed", outcome(coordinator.join)))
    seen.append(("how often two functions began", str(int(begun.numpy()))))
    seen.append(("their numbers, in order", " ".join(map(str, sorted(int(value.fetch()) for value in values)))))
    job.start("worker", 1)
    time.sleep(8)
    results = [coordinator.schedule(take, args=(numbers,)) for _ in range(60)]
    coordinator.join()
    # The killed worker restarts its dataset, the other continues with its third number.
    seen.append(("the first number of a dataset comes again where its worker was killed",
                 "yes" if 0 in [int(value.fetch()) for value in results] else "no"))
    job.kill("ps", tf.DeviceSpec.from_string(begun.device).task)
    seen.append(("join where a parameter server was killed",
                 outcome(lambda: (coordinator.schedule(count), coordinator.join()))))
    return seen


def rows(seen):
    return "".join(f'    {{"{what}", "{result}"}},\n' for what, result in seen)


def main():
    signal.alarm(LIMIT)
    job = Job(2, 2)
    try:
        placed = placement(job)
        thrown = errors(job)
        lost = losses(job)
    finally:
        job.end()
    shapes = ", ".join("{" + ", ".join(map(str, shape)) + "}" for shape in SHAPES)
    shards = ", ".join("{" + ", ".join(f"{{{count}, {task}}}" for count, task in each) + "}" for each in placed)
    (FOLDER / "coordinator.hpp").write_text(
        f"// Made by make_fixtures.py with TensorFlow {tf.__version__}.\n"
        "#pragma once\n\n#include <cstddef>\n#include <vector>\n\n#include <dist/core/shape.hpp>\n\n"
        "namespace tensorflow_coordinator {\n\n"
        "/// The shards of variables created one after another, with at most two shards each, on two parameter servers.\n"
        "struct Shard {\n  std::size_t rows, server;\n};\n"
        f"inline const dist::Shape shapes[] = {{{shapes}}};\n"
        f"inline const std::vector<Shard> shards[] = {{{shards}}};\n\n"
        "/// The exception of a call, or another result.\n"
        "struct Outcome {\n  const char *what, *result;\n};\n"
        f"inline constexpr Outcome errors[] = {{\n{rows(thrown)}}};\n"
        f"inline constexpr Outcome losses[] = {{\n{rows(lost)}}};\n\n"
        "}  // namespace tensorflow_coordinator\n")
    os._exit(0)  # a ClusterCoordinator waits for servers that are gone


if __name__ == "__main__":
    serve() if "TF_CONFIG" in os.environ else main()
