"""Prints the arrays that NumPy and safetensors read from our files in a folder, and writes their files there."""
import sys
import zipfile

import numpy
import safetensors
import safetensors.numpy

folder = sys.argv[1] + "/"


def show(file, name, array):
    print(file, name, array.dtype.name, list(array.shape), array.ravel().tolist())


for name in ["f32", "f64", "f16", "bool", "u8", "i64"]:
    show("npy", name, numpy.load(folder + name + ".npy"))
assert zipfile.ZipFile(folder + "ours.npz").testzip() is None
with numpy.load(folder + "ours.npz") as arrays:
    for name in arrays.files:
        show("npz", name, arrays[name])
with safetensors.safe_open(folder + "ours.safetensors", framework="np") as file:
    print("metadata", file.metadata())
    for name in sorted(file.keys()):
        if not name.startswith("bf16"):
            show("safetensors", name, file.get_tensor(name))
# NumPy itself has no bfloat16.
with open(folder + "ours.safetensors", "rb") as file:
    for name, entry in safetensors.deserialize(file.read()):
        if name == "bf16":
            print("safetensors", name, entry["dtype"], entry["shape"], bytes(entry["data"]).hex())

theirs = {
    "f32": numpy.array([[0.5, -1], [3, 1e30]], numpy.float32),
    "f64/x": numpy.array([0.1, 1e300]),
    "f16": numpy.array([1.5, 65504], numpy.float16),
    "bool": numpy.array([True, False, True]),
    "u8": numpy.array(255, numpy.uint8),
    "i64": numpy.array([[-1], [2**62]]),
    "größe": numpy.zeros((0, 3), numpy.int32),
}
numpy.save(folder + "theirs.npy", numpy.asfortranarray(theirs["f32"]))
numpy.savez(folder + "theirs.npz", **theirs)
numpy.savez_compressed(folder + "theirs_compressed.npz", **theirs)
safetensors.numpy.save_file(theirs, folder + "theirs.safetensors", metadata={"format": "np"})
