// Common code of the suites of distributed variables.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include <conformance/workers.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>

namespace conformance {

/// True if replicas of strategy `S` share copies of variables.
template <class S>
inline constexpr bool shares_copies = S::Store::shared;

/// True if `variable` of strategy `S` supports these policies. On servers, only OnWrite, sums and means.
template <class S, class Sync, class Agg>
inline constexpr bool has_variables = !dist::RemoteStore<typename S::Store> || std::same_as<Sync, dist::OnWrite> ||
                                      std::same_as<Agg, dist::Sum> || std::same_as<Agg, dist::Mean>;
/// True if OnRead variables with Sum are zero at the start of a replica function, which then adds to earlier
/// contributions.
template <class S>
inline constexpr bool sums_begin_at_zero = dist::RemoteStore<typename S::Store>;

/// Returns the first replica of a process that reads copy `copy`.
template <class S>
[[nodiscard]] std::size_t first_reader(std::size_t copy) {
  std::size_t local = 0;
  while (S::Store::copy_of(local) != copy) ++local;
  return local;
}

/// Checks that every element is `expected(r)` on replica `r`, and for readers of its copy outside replica functions.
template <class S, class Variable, class Expected>
void check_copies(S& strategy, const Variable& variable, Expected&& expected) {
  const std::size_t first = strategy.first_local_replica();
  for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
    CAPTURE(local);
    const auto copy = support::component_on_host(variable, strategy.scope(), local);
    const auto right = static_cast<double>(expected(first + local));
    const auto differs = [&](auto element) { return static_cast<double>(element) != right; };
    CHECK(std::none_of(copy.begin(), copy.end(), differs));
  }
  std::vector<int> wrong(strategy.num_local_replicas());
  strategy.run([&](auto& replica) {
    int& mistakes = wrong[replica.local_index()];
    const auto right = static_cast<double>(expected(replica.replica_id().index()));
    for (const auto element : support::read_on_host(variable, replica))
      mistakes += static_cast<double>(element) != right;
    if (variable.size() == 1) mistakes += static_cast<double>(variable.value(replica)) != right;
  });
  CHECK(wrong == std::vector<int>(strategy.num_local_replicas(), 0));
}

/// Checks that every element is `expected` outside replica functions.
template <class Variable, class S>
void check_outside(S& strategy, const Variable& variable, double expected) {
  const auto view = variable.read(strategy.scope());
  CHECK(view.shape() == variable.shape());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < view.size(); ++i) wrong += static_cast<double>(view[i]) != expected;
  CHECK(wrong == 0);
  if (variable.size() == 1) CHECK(static_cast<double>(variable.value(strategy.scope())) == expected);
}

/// Returns the text of the error of type `E` that `fn` throws, alone or as the cause of a ReplicaError.
template <class E, class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  } catch (const dist::ReplicaError& error) {
    try {
      std::rethrow_exception(error.cause());
    } catch (const E& cause) {
      return cause.what();
    }
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace conformance
