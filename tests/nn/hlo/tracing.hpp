#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/hlo/traced.hpp>

namespace dist_test {

/// The context of a traced step with `counted` valid rows.
struct Tracing {
  static constexpr bool is_tracing = true;

  std::int32_t counted;
  std::size_t replicas = 1;

  [[nodiscard]] dist::hlo::Traced<std::int32_t> rows() const { return counted; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const { return replicas; }
};

}  // namespace dist_test
