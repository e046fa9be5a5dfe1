#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/dtype.hpp>

namespace dist {

/// Gives every member the values of member `root`. A collective call.
template <SharesMemory C, class T>
void broadcast(const C& comm, std::size_t root, std::span<T> values) {
  DIST_EXPECT(root < comm.size());
  comm.publish({.operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root},
               values.data());
  if (comm.rank() != root) std::copy_n(comm.template peer<T>(root, 0), values.size(), values.data());
  comm.barrier();
}

}  // namespace dist
