"""Imports PyTorch, or exits with a message about what is missing."""
import sys


def torch_or_exit():
    try:
        import torch
        import torch.distributed
    except ImportError as error:
        sys.exit(f"PyTorch is not installed for {sys.executable} ({error}). Run this with a Python that has it, or: "
                 f"{sys.executable} -m pip install torch")
    return torch


def torch_with_gpu_or_exit():
    torch = torch_or_exit()
    if torch.version.cuda is None:
        sys.exit(f"PyTorch {torch.__version__} of {sys.executable} was built without CUDA. Install a build with CUDA")
    if not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} with CUDA {torch.version.cuda} found no GPU. Check nvidia-smi, the driver's "
                 "version and CUDA_VISIBLE_DEVICES")
    return torch
