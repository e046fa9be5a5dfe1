#pragma once

#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/loan.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/dtype.hpp>

namespace dist {

/// Gives every member the values of member `root`. A collective call.
template <SharesMemory C, class T>
void broadcast(const C& comm, std::size_t root, std::span<T> values) {
  DIST_EXPECT(root < comm.size());
  const detail::Loan loan{comm};
  comm.publish({.operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root},
               values.data());
  const T* const theirs = comm.template peer<T>(root, 0);
  if (theirs != values.data()) std::copy_n(theirs, values.size(), values.data());  // unless all gave one memory
  comm.barrier();
}

}  // namespace dist
