// A user-defined store: two neighbours share a copy of every variable. It joins the suites with the strategy in
// paired.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <dist/context/contexts.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace conformance {

struct PairedStore {
  static constexpr bool shared = true;
  [[nodiscard]] static constexpr std::size_t copies(std::size_t replicas) { return (replicas + 1) / 2; }
  [[nodiscard]] static constexpr std::size_t copy_of(std::size_t local_replica) { return local_replica / 2; }
  [[nodiscard]] static bool leads(const auto& replica) { return replica.local_index() % 2 == 0; }

  static void once(const auto& replica, auto&& change) {
    replica.barrier();
    if (leads(replica)) change();
    replica.barrier();
  }
  static void share_out(const auto& replica, std::size_t count, auto&& change) {
    const std::size_t me = replica.local_index();
    change(dist::shard_of(count, me % 2, std::min<std::size_t>(2, replica.num_replicas_in_sync() - me / 2 * 2)));
    replica.barrier();
  }
  template <class T>
  static void from_first(const auto& replica, std::span<T> copy, auto&& change) {
    replica.barrier();
    if (replica.local_index() == 0) change(copy);
    replica.share("the first copy", copy, [&](auto&& peers) {
      if (leads(replica) && replica.local_index() != 0) std::copy_n(peers(0).data(), copy.size(), copy.data());
    });
  }
  template <class T>
  static auto update_local_then_average(const auto& replica, std::span<T> copy, std::span<T> own, auto&& change) {
    std::copy(copy.begin(), copy.end(), own.begin());
    auto result = change(own);
    replica.all_reduce(dist::mean, own);
    once(replica, [&] { std::copy(own.begin(), own.end(), copy.begin()); });
    return result;
  }
  static void spread(auto& strategy, const auto& variable, bool) {
    const dist::CrossReplicaContext scope{strategy};
    const auto first = variable.copy(scope, 0);
    for (std::size_t copy = 1; copy < variable.copies(); ++copy)
      std::copy_n(first.data(), first.size(), variable.copy(scope, copy).data());
  }
};

}  // namespace conformance
