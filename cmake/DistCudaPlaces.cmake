# Sets dist_cuda_places: where a part of CUDA is looked for before the system's folders, and dist_cuda_toolkit, where it is
# looked for after them. Wheels of PyPI lie in the active Python environment.
file(GLOB dist_cuda_wheels "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cu13"
     "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cudnn"
     "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/nccl")
set(dist_cuda_places $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${dist_cuda_wheels})
set(dist_cuda_toolkit /usr/local/cuda)
unset(dist_cuda_wheels)
