#!/usr/bin/env python3
"""Writes results of TensorFlow and NumPy to the headers of this folder, as references for tests.

  python3 -m venv tensorflow && tensorflow/bin/pip install tensorflow-cpu
  tensorflow/bin/python tests/variable/tensorflow/make_fixtures.py && clang-format -i tests/variable/tensorflow/*.hpp

Lookups are computed in float64.
"""

import itertools
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent
partitioners = tf.distribute.experimental.partitioners


def write(name, includes, body):
    (FOLDER / f"{name}.hpp").write_text(
        f"// Made by make_fixtures.py with TensorFlow {tf.__version__} and NumPy {np.__version__}.\n"
        "#pragma once\n\n"
        + "".join(f"#include <{include}>\n" for include in includes)
        + f"\nnamespace tensorflow_{name} {{\n\n{body}\n}}  // namespace tensorflow_{name}\n"
    )


def numbers(values):
    values = np.asarray(values)
    digits = "%.10g" if values.dtype.kind == "f" else "%d"
    return "{" + ", ".join(digits % one for one in values.ravel()) + "}"


def doubles(name, values):
    return f"inline const std::vector<double> {name}{numbers(np.asarray(values, np.float64))};\n"


# Partitioners: the numbers of shards for all shapes, in this order, all element sizes, and all combinations of arguments.
SHAPES = [[1], [7], [10, 3], [3, 1000], [1000, 64], [5, 2, 100]]
TYPES = {1: tf.int8, 2: tf.bfloat16, 4: tf.float32, 8: tf.float64}
FIXED = [[1, 2, 7, 1000]]
MIN_SIZE = [[1, 4, 30, 1000, 256 << 10], [1, 3, 1000]]
MAX_SIZE = [[1, 12, 50, 999, 64 << 10], [None, 2, 100]]


def shards(make, arguments):
    found = []
    for shape, dtype, given in itertools.product(SHAPES, TYPES.values(), itertools.product(*arguments)):
        divided = make(*given)(tf.TensorShape(shape), dtype)
        assert all(other == 1 for other in divided[1:])
        found.append(divided[0])
    return numbers(found)


def sizes(values):
    return numbers([one or 0 for one in values])


body = "inline const dist::Shape shapes[] = {" + ", ".join(map(numbers, SHAPES)) + "};\n"
body += f"inline constexpr std::size_t element_bytes[] = {numbers(list(TYPES))};\n"
body += f"inline constexpr std::size_t num_shards[] = {sizes(FIXED[0])};\n"
body += f"inline constexpr std::size_t min_shard_bytes[] = {sizes(MIN_SIZE[0])};\n"
body += f"inline constexpr std::size_t max_shards_of_min_size[] = {sizes(MIN_SIZE[1])};\n"
body += f"inline constexpr std::size_t max_shard_bytes[] = {sizes(MAX_SIZE[0])};\n"
body += f"inline constexpr std::size_t max_shards_of_max_size[] = {sizes(MAX_SIZE[1])};  // 0: None\n\n"
body += "// The numbers of shards; the arguments vary fastest.\n"
body += f"inline constexpr std::size_t fixed[] = {shards(partitioners.FixedShardsPartitioner, FIXED)};\n"
body += f"inline constexpr std::size_t min_size[] = {shards(partitioners.MinSizePartitioner, MIN_SIZE)};\n"
body += f"inline constexpr std::size_t max_size[] = {shards(partitioners.MaxSizePartitioner, MAX_SIZE)};\n"
write("partitioners", ["cstddef", "dist/core/shape.hpp"], body)

# Slices: the elements of three that begin:end:step selects, for all begins and ends of None, -5, …, 5 in this order, and
# all steps in the order of STEPS; and slices of NumPy's arange with shape TABLE.
STEPS = [1, 2, -1, -2]
ENDS = [None, *range(-5, 6)]
chosen = ["".join(map(str, range(3)[slice(*parts)])) for parts in itertools.product(ENDS, ENDS, STEPS)]
TABLE = (7, 3, 2)
table = np.arange(np.prod(TABLE)).reshape(TABLE)
mask = np.array([True, False, False, True, False, True, False])
SLICES = {
    "row": table[-2],
    "element": table[6, 1, -1],
    "rows": table[1:6:2],
    "backwards": table[::-3],
    "columns": table[..., 1],
    "middle": table[:, 2],
    "new_axes": table[np.newaxis, 2:4, ..., np.newaxis, ::-1],
    "none": table[5:2],
    "past_the_end": table[-100:100, 1:100],
    "masked": table[mask],
    "masked_pairs": table[table[:, :, 0] % 4 == 0],
}
body = "inline const char* const chosen[] = {" + ", ".join(f'"{one}"' for one in chosen) + "};\n\n"
body += "struct Sliced {\n  dist::Shape shape;\n  std::vector<int> elements;\n};\n"
for name, values in SLICES.items():
    body += f"inline const Sliced {name}{{{numbers(np.shape(values))}, {numbers(values)}}};\n"
write("slices", ["vector", "dist/core/shape.hpp"], body)

# Lookups in a table of 10 rows of 2 elements in 3 shards, whose element i is sin(i + 1); element i of the result's gradient
# is cos(0.3 i).
ROWS, WIDTH = 10, 2
start = np.sin(np.arange(ROWS * WIDTH) + 1.0).reshape(ROWS, WIDTH)
SIZES = [4, 3, 3]


def looked_up(function):
    """Returns the result, and the gradient of the whole table."""
    parts = [tf.Variable(part) for part in np.split(start, np.cumsum(SIZES)[:-1])]
    with tf.GradientTape() as tape:
        result = function(parts)
    upstream = np.cos(0.3 * np.arange(tf.size(result).numpy())).reshape(result.shape)
    gradients = tape.gradient(result, parts, output_gradients=tf.constant(upstream))
    dense = [tf.convert_to_tensor(g) if g is not None else tf.zeros_like(p) for g, p in zip(gradients, parts)]
    return result.numpy(), tf.concat(dense, 0).numpy()


def sparse(splits, values, dtype):
    rows = np.repeat(np.arange(len(splits) - 1), np.diff(splits))
    columns = np.concatenate([np.arange(n) for n in np.diff(splits)])
    return tf.SparseTensor(np.stack([rows, columns], 1), tf.constant(values, dtype), [len(splits) - 1, 5])


DENSE_IDS = [[9, 0, 4], [4, 3, 7]]
SPLITS, IDS, WEIGHTS = [0, 3, 4, 8], [1, 9, 1, 4, 0, 5, 6, 9], [0.5, 2.0, 1.25, 3.0, 1.0, -0.25, 0.75, 2.0]
SAFE_SPLITS, SAFE_IDS = [0, 3, 3, 5, 6, 8], [2, -1, 9, -5, -7, 3, 8, 8]
SAFE_WEIGHTS = [0.5, 2.0, 1.5, 1.0, 1.0, -2.0, 0.0, 4.0]
body = "struct Lookup {\n  const char* name;\n  std::vector<double> values;\n  std::vector<double> gradient;\n};\n\n"
body += f"inline const std::vector<std::int64_t> dense_ids{numbers(DENSE_IDS)};  // [2, 3]\n"
for name, values in [("ids", IDS), ("safe_ids", SAFE_IDS)]:
    body += f"inline const std::vector<std::int64_t> {name}{numbers(values)};\n"
for name, values in [("splits", SPLITS), ("safe_splits", SAFE_SPLITS)]:
    body += f"inline const std::vector<std::size_t> {name}{numbers(values)};\n"
body += doubles("weights", WEIGHTS) + doubles("safe_weights", SAFE_WEIGHTS)
lookups = {}
for norm in [None, 0.75]:
    lookups[f"dense norm {norm or 0}"] = lambda parts, norm=norm: (
        tf.nn.embedding_lookup(parts, tf.constant(DENSE_IDS), norm)
    )
    for combiner, weighted in itertools.product(["sum", "mean", "sqrtn"], [False, True]):
        what = f"{combiner} {'weighted' if weighted else 'plain'} norm {norm or 0}"
        lookups[f"sparse {what}"] = lambda parts, norm=norm, combiner=combiner, weighted=weighted: (
            tf.nn.embedding_lookup_sparse(
                parts,
                sparse(SPLITS, IDS, tf.int64),
                sparse(SPLITS, WEIGHTS, tf.float64) if weighted else None,
                combiner,
                norm,
            )
        )
        for default in [None, 2]:
            lookups[f"safe {what} default {-1 if default is None else default}"] = (
                lambda parts, norm=norm, combiner=combiner, weighted=weighted, default=default: (
                    tf.nn.safe_embedding_lookup_sparse(
                        parts,
                        sparse(SAFE_SPLITS, SAFE_IDS, tf.int64),
                        sparse(SAFE_SPLITS, SAFE_WEIGHTS, tf.float64) if weighted else None,
                        combiner,
                        default,
                        norm,
                    )
                )
            )
body += "\ninline const std::vector<Lookup> lookups{\n"
found = [(name, *looked_up(function)) for name, function in lookups.items()]
body += ",\n".join(f'{{"{name}", {numbers(values)}, {numbers(gradient)}}}' for name, values, gradient in found)
body += "};\n"
write("lookups", ["cstddef", "cstdint", "vector"], body)
