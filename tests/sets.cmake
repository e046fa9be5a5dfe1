# Sets of tests, by which DIST_TEST_FOLDERS may choose: folders of tests/, single tests and other sets. After "-" stands what
# is left out again; a set that begins with that has all others.

# The README's test command: all but the gates and some suites that repeat others with more types or nodes.
set(dist_set_test -gates -comm/auto_all_reduce -comm/hierarchical_neighbor_exchange -conformance/guarded_device
    -conformance/paired -conformance/simulated_collectives -conformance/simulated_methods -conformance/simulated_optimizers
    -conformance/simulated_variables -multi_worker/collectives_in_window -multi_worker/several_nodes)

# Under the address sanitizer: what handles memory, files and processes, and a few tests of each other folder.
set(dist_set_asan checkpoint comm rpc -comm/hierarchical -comm/hierarchical_neighbor_exchange -comm/cuda comm/cuda/policies
    -comm/messages comm/messages/message_collectives -comm/mpi/killed -comm/nccl comm/nccl/nccl_all_reduce -comm/node context
    coordinator core data device -device/cuda/optimizer_policies -device/cuda/optimizer_suite -device/reuse_memory fake_cuda
    fake_nccl fake_cudnn io server strategy/cuda/central_storage strategy/mirrored summary train/model_fit variable/scatter
    variable/variable_core)

# In release, what the README's test command leaves out: GPUs, the gates, and the suites that repeat others.
set(dist_set_beyond comm/auto_all_reduce comm/cuda comm/hierarchical_neighbor_exchange comm/nccl conformance/guarded_device
    conformance/not_finite_cudnn conformance/paired conformance/simulated_collectives conformance/simulated_methods
    conformance/simulated_optimizers conformance/simulated_variables device/cuda/optimizer_policies
    device/cuda/optimizer_suite fake_cuda fake_cudnn fake_nccl faults/gpu_workers gates multi_worker/collectives_in_window
    multi_worker/nccl multi_worker/nccl_suites multi_worker/nccl_symmetric multi_worker/several_nodes nn/cuda strategy/cuda
    strategy/shared_copy_order strategy/step_graph variable/slices_deduplicator)

# In release, the other tests that do not run under the address sanitizer, or run there with fewer types and processes.
set(dist_set_suites -asan -beyond comm/mailboxes comm/messages comm/mpi context/run_collectively_any_process
    context/run_collectively_of_processes device/arena device/hwloc device/pjrt/executable device/service_thread
    rpc/grpc/api rpc/local_transport server/shard strategy/mirrored train/model_fit variable/scatter variable/variable_core)

# Under the thread sanitizer: what has threads.
set(dist_set_tsan device -device/cuda/losses -device/cuda/metrics -device/cuda/optimizer -device/reuse_memory comm rpc
    -comm/messages context data/cache data/distributed_dataset data/distributed_pipelines data/prefetch data/dataset_resumable
    data/several_workers data/uploaded server coordinator strategy -strategy/combine_values -strategy/cuda/methods
    -strategy/cuda/variables fake_cuda fake_nccl fake_cudnn)

set(dist_set_libcxx core io comm rpc context data device nn strategy train variable)

# With MPICH: strategies of several processes.
set(dist_set_mpich comm/mpi comm/node faults/faulty_workers multi_worker -multi_worker/collectives_in_window
    -multi_worker/several_nodes)

# In an emulator: suites of one process, and kernels with vectors of another length.
set(dist_set_aarch64 checkpoint comm/memory comm/thread conformance context core data io nn -nn/onednn strategy/mirrored
    strategy/central_storage strategy/default train variable)
set(dist_set_aarch64-sve comm/memory comm/thread core nn/kernels nn/reference)
