#!/usr/bin/env python3
"""The training steps of benchmarks/cnn_step.cpp, resnet_step.cpp and gpt_step.cpp in PyTorch: same network, batch, loss
and update, on random images or tokens in memory. peers/frameworks compares them with ours.

    pytorch_step.py single1|single2|ddp [--network cnn|perceptron|resnet|gpt] [--bfloat16] [--serve] [--windows N] [--seconds S]
    pytorch_step.py gpu_eager|gpu_compiled|gpu_graphs [--bfloat16] [--batch N] [--serve] [--windows N] [--seconds S]

single1: 64 images, one thread. single2: 128 images, two threads. ddp: DistributedDataParallel over gloo on the loopback
interface, two processes with 64 images and one thread each. The perceptron of benchmarks/torch_step.cpp (11 million
parameters) has 16 images instead of 64; the ResNet has 32, and uses Adam instead of SGD. The GPT has 8 sequences of 256 tokens in
all configurations, and uses AdamW. --bfloat16: products of BFloat16 under autocast.
gpu_eager: on a GPU, images in its memory; gpu_compiled: with torch.compile; gpu_graphs: with torch.compile and CUDA graphs
(mode "reduce-overhead"). Products are in float32 without TF32, like ours, or under autocast."""
import argparse
import datetime
import os
import socket
import subprocess
import sys

import find_torch
import windows

torch = find_torch.torch_or_exit()
PER_PROCESS = {"cnn": 64, "perceptron": 16, "resnet": 32, "gpt": 4}
IMAGE = {"cnn": (1, 28, 28), "perceptron": (1, 28, 28), "resnet": (3, 32, 32)}
CONTEXT, CHANNELS, HEADS, WORDS = 256, 384, 6, 65  # of the GPT
PARAMETERS = {"cnn": 2_770_634, "perceptron": 11_086_910, "resnet": 4_913_802, "gpt": 10_770_816}
ON_GPU = {"gpu_eager": None, "gpu_compiled": "default", "gpu_graphs": "reduce-overhead"}  # modes of torch.compile


class Residual(torch.nn.Module):
    def __init__(self, before, filters, stride):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(before, filters, 3, stride, 1), torch.nn.BatchNorm2d(filters), torch.nn.ReLU(),
            torch.nn.Conv2d(filters, filters, 3, 1, 1), torch.nn.BatchNorm2d(filters))
        self.shortcut = torch.nn.Identity() if stride == 1 else torch.nn.Sequential(
            torch.nn.Conv2d(before, filters, 1, stride), torch.nn.BatchNorm2d(filters))

    def forward(self, x):
        return torch.nn.functional.relu(self.body(x) + self.shortcut(x))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_dense = torch.nn.LayerNorm(CHANNELS), torch.nn.LayerNorm(CHANNELS)
        self.attention_input = torch.nn.Linear(CHANNELS, 3 * CHANNELS)
        self.attention_output = torch.nn.Linear(CHANNELS, CHANNELS)
        self.dense = torch.nn.Sequential(torch.nn.Linear(CHANNELS, 4 * CHANNELS), torch.nn.GELU("tanh"),
                                         torch.nn.Linear(4 * CHANNELS, CHANNELS))

    def forward(self, x):
        parts = self.attention_input(self.before_attention(x)).split(CHANNELS, 2)
        query, key, value = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in parts)
        heads = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_output(heads.transpose(1, 2).flatten(2))
        return x + self.dense(self.before_dense(x))


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, CHANNELS)
        self.positions = torch.nn.Parameter(torch.randn(CONTEXT, CHANNELS) / 50)
        self.blocks = torch.nn.Sequential(*[Block() for _ in range(6)], torch.nn.LayerNorm(CHANNELS))

    def forward(self, x):
        scores = self.blocks(self.words(x) + self.positions) @ self.words.weight.T
        return scores.float().flatten(0, 1)


def make_model(network="cnn"):
    if network == "gpt":
        return Gpt()
    if network == "resnet":
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1),
            Residual(64, 64, 1), Residual(64, 128, 2), Residual(128, 256, 2), Residual(256, 512, 2),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, 10))
    if network == "perceptron":
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(784, 3000), torch.nn.ReLU(), torch.nn.Linear(3000, 2900), torch.nn.ReLU(),
            torch.nn.Linear(2900, 10))
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(21632, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))


def make_step(model, network, images, seed, bfloat16=False):
    """Returns a function that runs `count` training steps and returns the last loss."""
    optimizers = {"resnet": torch.optim.Adam, "gpt": torch.optim.AdamW}
    optimizer = optimizers.get(network, torch.optim.SGD)(model.parameters(), 1e-3)
    loss_function = torch.nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(seed)
    if network == "gpt":
        x, y = torch.randint(0, WORDS, (2, images, CONTEXT), generator=generator)
        y = y.flatten()
    else:
        x = torch.rand(images, *IMAGE[network], generator=generator)
        y = torch.randint(0, 10, (images,), generator=generator)

    def step(count):
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
                loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()
        return loss.item()

    return step


def make_gpu_step(configuration, images, bfloat16):
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    model = make_model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, fused=True)
    loss_function = torch.nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(images, 1, 28, 28, generator=generator).cuda()
    y = torch.randint(0, 10, (images,), generator=generator).cuda()

    def loss_of(x, y):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bfloat16):
            return loss_function(model(x), y)

    if ON_GPU[configuration]:
        loss_of = torch.compile(loss_of, mode=ON_GPU[configuration])

    def step(count):
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
        return loss.item()  # waits for the GPU

    return step


def join_group(rank, port):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2,
                                         timeout=datetime.timedelta(minutes=10))


def make_ddp_step(network, seed):
    model = torch.nn.parallel.DistributedDataParallel(make_model(network), gradient_as_bucket_view=True)
    return make_step(model, network, PER_PROCESS[network], seed)


def follow(network, port):
    """Runs the second process: in each round as many steps as the first process broadcasts, until it broadcasts 0."""
    join_group(1, port)
    step = make_ddp_step(network, 1)
    count = torch.zeros(1, dtype=torch.int64)
    while True:
        torch.distributed.broadcast(count, 0)
        if count.item() == 0:
            return
        step(count.item())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration", choices=["single1", "single2", "ddp", *ON_GPU])
    parser.add_argument("--network", choices=list(PER_PROCESS), default="cnn", help="on CPUs")
    parser.add_argument("--batch", type=int, default=512, help="on a GPU")
    parser.add_argument("--bfloat16", action="store_true", help="autocast, not for ddp")
    parser.add_argument("--follow", type=int, metavar="PORT", help=argparse.SUPPRESS)
    windows.add_arguments(parser)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(2 if arguments.configuration == "single2" else 1)
    if arguments.follow:
        follow(arguments.network, arguments.follow)
        return

    def measure(step, images, where=""):
        before = step(1)
        assert step(5 if arguments.network == "gpt" else 20) < before, "the step does not train"
        units = images * CONTEXT if arguments.network == "gpt" else images
        windows.measure(step, units, f"PyTorch {torch.__version__} {arguments.configuration}{where}, {arguments.network}", arguments.serve,
                        arguments.windows, arguments.seconds)

    if arguments.configuration in ON_GPU:
        find_torch.torch_with_gpu_or_exit()
        step = make_gpu_step(arguments.configuration, arguments.batch, arguments.bfloat16)
        measure(step, arguments.batch, f" on {torch.cuda.get_device_name()}")
        return

    if arguments.configuration != "ddp":
        images = 8 if arguments.network == "gpt" else PER_PROCESS[arguments.network] * torch.get_num_threads()
        model = make_model(arguments.network)
        assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[arguments.network]
        half = ", bfloat16" if arguments.bfloat16 else ""
        measure(make_step(model, arguments.network, images, 0, arguments.bfloat16), images, half)
        return

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    follower = subprocess.Popen([sys.executable, __file__, "ddp", "--network", arguments.network, "--follow", str(port)],
                                stdin=subprocess.DEVNULL)
    try:
        join_group(0, port)
        own_step = make_ddp_step(arguments.network, 0)

        def step(count):
            torch.distributed.broadcast(torch.tensor([count]), 0)
            return own_step(count) if count else None

        measure(step, 2 * PER_PROCESS[arguments.network])
        step(0)
        follower.wait(60)
        torch.distributed.destroy_process_group()
    finally:
        follower.kill()
        follower.wait()


if __name__ == "__main__":
    main()
