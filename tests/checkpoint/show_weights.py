"""Prints what NumPy and safetensors read from the weights in a folder."""
import sys

import numpy
import safetensors.numpy

for name in ["weights.npz", "weights.safetensors"]:
    load = numpy.load if name.endswith(".npz") else safetensors.numpy.load_file
    weights = load(sys.argv[1] + "/" + name)
    for key in sorted(weights):
        print(key, weights[key].dtype, list(weights[key].shape), weights[key].ravel().tolist())
