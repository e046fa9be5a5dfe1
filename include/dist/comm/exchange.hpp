#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/comm/communicator.hpp>
#include <dist/comm/loan.hpp>
#include <dist/core/contract.hpp>

namespace dist {

/// Gives every member the value of every member, `of_all[rank]`: shapes, counts, flags. `operation`, a literal, is how
/// messages call it. A collective call.
template <SharesMemory C, class T>
  requires std::is_trivially_copyable_v<T>
void exchange(const C& comm, std::string_view operation, const T& mine, std::span<T> of_all) {
  DIST_EXPECT(of_all.size() == comm.size());
  const CollectiveCall call{.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"};
  if constexpr (ExchangesSmall<C>) {
    if constexpr (sizeof(T) <= C::exchange_capacity) {
      comm.exchange(call, std::span<const T>{&mine, 1});
      for (std::size_t rank = 0; rank < of_all.size(); ++rank) of_all[rank] = *comm.template received<T>(rank);
      return;
    }
  }
  const detail::Loan loan{comm};
  T copy = mine;  // `publish` takes a mutable pointer
  comm.publish(call, &copy);
  for (std::size_t rank = 0; rank < of_all.size(); ++rank) of_all[rank] = *comm.template peer<T>(rank, 0);
  comm.barrier();
}

}  // namespace dist
