/// The non-template code of the library that needs no optional package, compiled once per program. In CMake,
/// dist::dist compiles it. Otherwise exactly one source file consists of this include, and all source files define
/// DIST_COMPILED.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::dist, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

// Kernels are compiled for all vector widths here, and selected at run time.
#ifndef DIST_DISPATCH_VECTORS
#define DIST_DISPATCH_VECTORS 1
#endif

// CMake compiles this file as several objects, numbered by DIST_OBJECT. Otherwise all are one object.
#ifndef DIST_OBJECT
#define DIST_OBJECT 0
#endif

#if DIST_OBJECT == 0 || DIST_OBJECT == 1  // communication and files
#include <dist/comm/background.hpp>
#include <dist/comm/collective_call.ipp>
#include <dist/comm/failure_notice.ipp>
#include <dist/comm/group_layout.ipp>
#include <dist/comm/health/peer_health.ipp>
#include <dist/comm/health/timeout.ipp>
#include <dist/comm/health/watchdog.ipp>
#include <dist/comm/neighbor_exchange.hpp>
#include <dist/comm/neighbor_message.ipp>
#include <dist/comm/node/communicator.ipp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/node/node_replicas.ipp>
#include <dist/comm/thread/communicator.ipp>
#include <dist/core/axes.ipp>
#include <dist/core/error.ipp>
#include <dist/core/shape.ipp>
#include <dist/core/slicing.ipp>
#include <dist/core/text.ipp>
#include <dist/core/trace.ipp>
#include <dist/core/track.ipp>
#include <dist/core/transpose.ipp>
#include <dist/core/vectors.ipp>
#include <dist/device/affinity.ipp>
#include <dist/device/arena.ipp>
#include <dist/device/cpu.ipp>
#include <dist/device/device_name.ipp>
#include <dist/device/replica_threads.ipp>
#include <dist/device/shared_memory.ipp>
#include <dist/device/signal_flag.ipp>
#include <dist/device/slow_wait.ipp>
#include <dist/device/topology.ipp>
#include <dist/io/atomic_file.ipp>
#include <dist/io/crc32c.ipp>
#include <dist/io/csv.hpp>
#include <dist/io/elements.ipp>
#include <dist/io/npy.ipp>
#include <dist/net/secret.ipp>

template class dist::io::CsvReader<dist::io::FileSource>;
template class dist::BackgroundCollectives<dist::SelfCollectives>;
template void dist::detail::reduce_with_members(const dist::SelfCollectives&, const dist::Reduction&,
                                                const dist::detail::OperandsOfMembers<const std::byte*>&, std::size_t,
                                                std::byte*);
template class dist::SharedMemoryCollectives<dist::ThreadCommunicator>;
template class dist::ThreadAllReduce::On<dist::ThreadCommunicator>;
DIST_REDUCTIONS(DIST_THREAD_ALL_REDUCE, )
template class dist::SharedMemoryCollectives<dist::NodeCommunicator>;
template class dist::ThreadAllReduce::On<dist::NodeCommunicator>;
template class dist::SharedMemoryCollectives<dist::NodeReplicaCommunicator>;
template class dist::ThreadAllReduce::On<dist::NodeReplicaCommunicator>;
template class dist::NodeAllReduce::On<dist::NodeCommunicator>;
template class dist::NodeAllReduce::On<dist::NodeReplicaCommunicator>;
template dist::detail::NeighborMismatch
dist::detail::NeighborExchange<dist::ThreadAllReduce::On<dist::ThreadCommunicator>>::run(
    const dist::ThreadAllReduce::On<dist::ThreadCommunicator>&, std::span<const dist::SendTo>,
    std::span<const dist::ReceiveFrom>, const dist::detail::NeighborMismatch&);
#endif

#if DIST_OBJECT == 0 || DIST_OBJECT == 2  // data and networks
#include <dist/checkpoint/leaf.ipp>
#include <dist/context/input_context.ipp>
#include <dist/context/replica_function.ipp>
#include <dist/data/auto_shard.ipp>
#include <dist/data/csv.ipp>
#include <dist/data/image_folder.ipp>
#include <dist/data/images.ipp>
#include <dist/data/index_shuffle.ipp>
#include <dist/data/parallel_map.ipp>
#include <dist/data/prefetch.ipp>
#include <dist/data/preprocessing.ipp>
#include <dist/data/replica_batches.ipp>
#include <dist/data/rows.ipp>
#include <dist/data/token_file.ipp>
#include <dist/hlo/collectives.ipp>
#include <dist/hlo/convolution.ipp>
#include <dist/hlo/gradients.ipp>
#include <dist/hlo/indexing.ipp>
#include <dist/hlo/scan.ipp>
#include <dist/hlo/trace.ipp>
#include <dist/hlo/type.ipp>
#include <dist/hlo/untyped.ipp>
#include <dist/hlo/windows.ipp>
#include <dist/nn/check.ipp>
#include <dist/nn/describe_layers.ipp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/initializer.ipp>
#include <dist/nn/kernels/attention.ipp>
#include <dist/nn/losses/global_batch_size.ipp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/auc.ipp>
#include <dist/nn/metrics/confusion_matrix.ipp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/optimizer_slots.ipp>
#include <dist/nn/optimizers/options.ipp>
#include <dist/nn/schedules/decays.ipp>
#include <dist/summary/event_file.ipp>
#include <dist/train/callbacks/csv_logger.ipp>
#include <dist/train/callbacks/early_stopping.ipp>
#include <dist/train/callbacks/reduce_lr_on_plateau.ipp>
#include <dist/train/class_weights.ipp>
#include <dist/train/fit_loop.ipp>
#include <dist/train/history.ipp>
#include <dist/train/logs.ipp>
#include <dist/train/measurements.ipp>
#include <dist/train/progress_bar.ipp>
#include <dist/variable/embedding.ipp>
#include <dist/variable/shard_layout.ipp>
#include <dist/variable/variable_core.ipp>

template class dist::detail::VariableCore<dist::Arena>;

namespace dist::nn::detail {

template float loss_of_row(const MeanAbsoluteError&, Row<const float>, Row<const float>);
template float loss_of_row(const MeanSquaredError&, Row<const float>, Row<const float>);
template float loss_of_row(const MeanSquaredError&, Row<const float>, Row<const float>, float, Row<float>);
template void round_to<BFloat16>(const float*, float*, std::size_t);
template void round_to<BFloat16>(const float*, BFloat16*, std::size_t);
template void round_to<Float16>(const float*, float*, std::size_t);
template void fill_uniform(TensorView<float>, double, RandomStream);
template void fill_truncated_normal(TensorView<float>, double, RandomStream);
template float crossentropy_of_label(Row<const float>, const LabelOfFloats&, bool);
template float crossentropy_of_label(Row<const float>, const LabelOfFloats&, bool, float, Row<float>);

}  // namespace dist::nn::detail
#endif

#if DIST_OBJECT == 0 || DIST_OBJECT == 3  // processes and strategies
#include <dist/cluster/address.ipp>
#include <dist/cluster/cluster_spec.ipp>
#include <dist/cluster/launcher.ipp>
#include <dist/cluster/lone_process.ipp>
#include <dist/cluster/slurm_resolver.ipp>
#include <dist/cluster/torchrun_resolver.ipp>
#include <dist/cluster/tpu_resolver.ipp>
#include <dist/cluster/validate.ipp>
#include <dist/coordinator/closure_queue.ipp>
#include <dist/coordinator/coordinator_state.ipp>
#include <dist/coordinator/remote_value.ipp>
#include <dist/coordinator/worker_session.ipp>
#include <dist/parameter_server.hpp>
#include <dist/rpc/local_transport.ipp>
#include <dist/rpc/rpc.ipp>
#include <dist/server/archive.ipp>
#include <dist/server/error.ipp>
#include <dist/server/parts.ipp>
#include <dist/server/registry.ipp>
#include <dist/server/serve.ipp>
#include <dist/server/shard.ipp>
#include <dist/server/shard_server.ipp>
#include <dist/server/shared_memory_client.ipp>
#include <dist/server/store_memory.ipp>
#include <dist/server/wire.ipp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/thread_replicas.ipp>

namespace dist {

template class ThreadReplicas<ThreadAllReduce, Cpu>;
template class BasicStrategy<Mirrored<ThreadAllReduce>, ThreadReplicas<ThreadAllReduce, Cpu>, OneProcess,
                             MirroredStore>;
template class Mirrored<ThreadAllReduce>;
template class BasicStrategy<CentralStorage<Cpu>, ThreadReplicas<ThreadAllReduce, Cpu>, OneProcess, CentralStore>;
template class CentralStorage<Cpu>;
DIST_PARAMETER_SERVER_TEMPLATES(, Local)

}  // namespace dist
#endif

#if DIST_OBJECT == 0 || DIST_OBJECT == 4  // kernels
#include <dist/comm/reduction.hpp>
DIST_REDUCTIONS(DIST_REDUCTION_KERNELS, )
#endif
