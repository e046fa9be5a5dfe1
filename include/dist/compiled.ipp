/// The parts of the library that are no templates and need no package. A program compiles this once, in a source file
/// that includes nothing else, and all its sources define DIST_COMPILED: they then compile faster, and nothing else
/// changes. In CMake, linking dist::compiled does both.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all sources of the program, or in CMake link dist::compiled, which does"
#include <dist_compiled>  // there is none, and only a missing header ends a compilation
#endif

#include <dist/cluster/address.ipp>
#include <dist/cluster/cluster_spec.ipp>
#include <dist/cluster/environment.ipp>
#include <dist/cluster/launcher.ipp>
#include <dist/cluster/launcher_resolver.ipp>
#include <dist/cluster/roles.ipp>
#include <dist/cluster/slurm_resolver.ipp>
#include <dist/cluster/task_endpoint.ipp>
#include <dist/cluster/torchrun_resolver.ipp>
#include <dist/cluster/tpu_resolver.ipp>
#include <dist/cluster/validate.ipp>
#include <dist/comm/call_sequence.ipp>
#include <dist/comm/collective_call.ipp>
#include <dist/comm/communication_options.ipp>
#include <dist/comm/health/peer_health.ipp>
#include <dist/comm/health/watchdog.ipp>
#include <dist/comm/neighbor_message.ipp>
#include <dist/comm/node/communicator.ipp>
#include <dist/comm/packing.ipp>
#include <dist/comm/thread/communicator.ipp>
#include <dist/coordinator/closure_queue.ipp>
#include <dist/coordinator/coordinator_state.ipp>
#include <dist/coordinator/error.ipp>
#include <dist/coordinator/remote_result.ipp>
#include <dist/coordinator/worker_session.ipp>
#include <dist/core/axes.ipp>
#include <dist/core/contract.ipp>
#include <dist/core/error.ipp>
#include <dist/core/log.ipp>
#include <dist/core/shape.ipp>
#include <dist/core/slicing.ipp>
#include <dist/core/text.ipp>
#include <dist/core/thread_name.ipp>
#include <dist/core/trace.ipp>
#include <dist/device/affinity.ipp>
#include <dist/device/arena.ipp>
#include <dist/device/cpu.ipp>
#include <dist/device/device_name.ipp>
#include <dist/device/processor_share.ipp>
#include <dist/device/replica_threads.ipp>
#include <dist/device/slow_wait.ipp>
#include <dist/device/topology.ipp>
#include <dist/hlo/collectives.ipp>
#include <dist/hlo/convolution.ipp>
#include <dist/hlo/gradients.ipp>
#include <dist/hlo/indexing.ipp>
#include <dist/hlo/scan.ipp>
#include <dist/hlo/trace.ipp>
#include <dist/hlo/type.ipp>
#include <dist/hlo/untyped.ipp>
#include <dist/hlo/windows.ipp>
#include <dist/io/atomic_file.ipp>
#include <dist/net/deadline.ipp>
#include <dist/net/endpoint.ipp>
#include <dist/net/machine.ipp>
#include <dist/net/secret.ipp>
#include <dist/rpc/local_transport.ipp>
#include <dist/rpc/rpc.ipp>
#include <dist/server/archive.ipp>
#include <dist/server/binary.ipp>
#include <dist/server/coordinator_options.ipp>
#include <dist/server/error.ipp>
#include <dist/server/parts.ipp>
#include <dist/server/requests.ipp>
#include <dist/server/serve.ipp>
#include <dist/server/shard.ipp>
#include <dist/server/shard_server.ipp>
#include <dist/server/shard_spec.ipp>
#include <dist/server/shard_table.ipp>
#include <dist/server/shared_memory_client.ipp>
#include <dist/server/store_memory.ipp>
#include <dist/server/update.ipp>
#include <dist/server/wire.ipp>
#include <dist/variable/id_list.ipp>
#include <dist/variable/shard_layout.ipp>
