#pragma once

#include <string_view>

#include <dist/comm/direct/direct_collectives.hpp>
#include <support/guarded_device.hpp>

namespace testing {

struct GuardedAllReduce {
  static constexpr std::string_view name = "GuardedAllReduce";
  template <class D>
  using State = dist::DirectCollectives<GuardedDevice>::State<D>;
  template <class C>
  using On = dist::DirectCollectives<GuardedDevice>::On<C>;
};

}  // namespace testing
