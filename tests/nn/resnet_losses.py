"""Prints the first losses of examples/19_resnet.cpp by PyTorch in float64, from the same initial weights and images.

    python3 -m venv torch && torch/bin/pip install torch
    torch/bin/python tests/nn/resnet_losses.py

The program compares its losses, in float32, with these numbers. Written with PyTorch 2.15.0.
"""

import numpy as np
import torch
from torch import nn

torch.set_default_dtype(torch.float64)


def uniform(seed, stream, index):
    """dist::RandomStream{seed, stream}.uniform<double>(index) for an array of indices: Philox4x32-10."""
    low, key = 0xFFFFFFFF, [seed, 0]
    words = [index & low, index >> 32, index * 0 + (stream & low), index * 0 + (stream >> 32)]
    for _ in range(10):
        a, b = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [(b >> 32) ^ words[1] ^ key[0], b & low, (a >> 32) ^ words[3] ^ key[1], a & low]
        key = [(key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low]
    return ((words[1] << 32 | words[0]) >> 11) * 2.0**-53


def rounded(array):
    """The numbers rounded to float32, as a tensor of float64."""
    return torch.tensor(array.astype(np.float32)).double()


class Weights:
    """The initial weights of an nn::Network with seed 1, whose parameters have consecutive random streams."""

    def __init__(self):
        self.stream = 0x77656967 << 32

    def kernel(self, *shape):
        """A kernel by nn::GlorotUniform, [height, width, channels, filters] or [inputs, units]."""
        limit = np.sqrt(6 / (np.prod(shape[:-2]) * (shape[-2] + shape[-1])))
        numbers = uniform(1, self.stream, np.arange(np.prod(shape), dtype=np.uint64))
        self.stream += 1
        return rounded(limit * (2 * numbers - 1)).reshape(shape)

    def conv(self, channels, filters, window, stride):
        """A convolution with Same padding and a normalisation."""
        layer = nn.Conv2d(channels, filters, window, stride)
        layer.weight.data = self.kernel(window, window, channels, filters).permute(3, 2, 0, 1)
        layer.bias.data.zero_()
        self.stream += 3  # the bias, gamma and beta
        return nn.Sequential(Same(window, stride), layer, nn.BatchNorm2d(filters, eps=1e-3))


class Same(nn.Module):
    """Pads as TensorFlow does: the odd pixel is at the end."""

    def __init__(self, window, stride, value=0.0):
        super().__init__()
        self.window, self.stride, self.value = window, stride, value

    def forward(self, x):
        total = [max((-(-side // self.stride) - 1) * self.stride + self.window - side, 0) for side in x.shape[2:]]
        before = [padding // 2 for padding in total]
        pads = (before[1], total[1] - before[1], before[0], total[0] - before[0])
        return nn.functional.pad(x, pads, value=self.value)


class Block(nn.Module):
    def __init__(self, weights, channels, filters, stride):
        super().__init__()
        self.body = nn.Sequential(weights.conv(channels, filters, 3, stride), nn.ReLU(), weights.conv(filters, filters, 3, 1))
        self.shortcut = weights.conv(channels, filters, 1, 2) if stride == 2 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(width):
    weights = Weights()
    layers = [weights.conv(3, width, 7, 2), nn.ReLU(), Same(3, 2, -torch.inf), nn.MaxPool2d(3, 2)]
    layers += [Block(weights, width, width, 1), Block(weights, width, width, 1)]
    layers += [Block(weights, filters // 2, filters, 2) for filters in (2 * width, 4 * width, 8 * width)]
    dense = nn.Linear(8 * width, 10)
    dense.weight.data = weights.kernel(8 * width, 10).T.contiguous()
    dense.bias.data.zero_()
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), dense)


def images(first, count, side):
    """The images of the program, resized."""
    number = np.arange(first, first + count)[:, None, None, None]
    labels = number * 7 % 10
    angle = 0.314159 * (labels + 0.5)
    row, column, channel = np.arange(32)[:, None, None], np.arange(32)[:, None], np.arange(3)
    wave = np.sin(0.6 * (row * np.sin(angle) + column * np.cos(angle)) + (number + channel))
    noise = uniform(3, 0, np.arange(first * 3072, (first + count) * 3072, dtype=np.uint64)).reshape(wave.shape) - 0.5
    x = rounded(0.5 + 0.3 * wave + 0.4 * noise).permute(0, 3, 1, 2)
    return nn.functional.interpolate(x, size=(side, side), mode="bilinear"), torch.tensor(labels.ravel())


def losses(width, side, batch, steps, change=0):
    """`change` is the standard deviation of numbers that are added to the images."""
    model = resnet(width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(steps):
        x, labels = images(step * batch, batch, side)
        loss = nn.functional.cross_entropy(model(x + change * torch.randn(x.shape)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


small = (8, 64, 8, 3)
for form in small, (64, 224, 2, 1):
    print("width %d, side %d, batches of %d, %d steps:" % form, *(f"{loss:.8f}" for loss in losses(*form)))
# The slope of ReLU is not continuous, so rounding can change later losses. With these images it does not.
for _ in range(20):
    changed = list(losses(*small, change=1e-6))
    assert np.allclose(changed, list(losses(*small)), rtol=0, atol=5e-5), changed
