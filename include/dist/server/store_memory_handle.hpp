/// Where a store and its shards lie, for clients that may reach them without messages.
#pragma once

#include <cstdint>

#include <dist/io/element_type.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server {

/// Which processes reach the memory of a store.
enum class Reach : std::uint8_t {
  process,  ///< only its own
  machine,  ///< all processes of this machine and user
};

/// What clients do with the memory of a server on their machine.
enum class SharedMemoryAccess : std::uint8_t {
  none,  ///< nothing: all pushes and pulls are messages
  read,  ///< they pull, without locks, so that a client that ends or stops in the middle keeps nobody waiting
  write,  ///< they also push, under locks. A client that ends in the middle makes a shard unusable: for jobs that end as a whole
};

/// What a coordinator tells its workers of how they are to use the parameter servers.
struct WorkerOptions {
  SharedMemoryAccess shared_memory = SharedMemoryAccess::read;
  std::uint64_t bucket_bytes = 0;                   ///< see ParameterServerOptions
  std::uint64_t max_staleness = ~std::uint64_t{0};  ///< see ParameterServerOptions
};

/// Where the memory of a store lies.
struct StoreMemoryHandle {
  std::uint64_t process_space = 0;  ///< of the store's process (dist::process_space)
  std::int32_t process = 0;         ///< the number of that process
  std::int32_t descriptor = -1;     ///< of memory that other processes can map; -1: there is none
  std::uint64_t bytes = 0;          ///< the size of that memory
};

/// A shard as other processes find it in the memory of its store.
struct SharedShard {
  ShardSpec spec;
  io::ElementType type = io::ElementType::f32;
  std::uint64_t state = 0;   ///< the offset of its ShardState
  std::uint64_t serial = 0;  ///< which that ShardState has as long as the shard exists
};

}  // namespace dist::server
