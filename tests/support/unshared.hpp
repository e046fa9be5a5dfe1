// A policy whose collectives do not share memory, although the replicas are threads: as between processes.
#pragma once

#include <cstddef>
#include <string_view>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/duration.hpp>

namespace testing {

struct Unshared {
  static constexpr std::string_view name = "Unshared";

  /// A member of a group that can only wait for the others.
  template <class C>
  class Apart {
   public:
    explicit Apart(C comm) : comm_(comm) {}
    [[nodiscard]] std::size_t rank() const noexcept { return comm_.rank(); }
    [[nodiscard]] std::size_t size() const noexcept { return comm_.size(); }
    void barrier() const { comm_.barrier(); }
    [[nodiscard]] Apart local() const noexcept { return *this; }

   private:
    C comm_;
  };

  template <class C>
  class On : public dist::ThreadAllReduce::On<C> {
   public:
    using dist::ThreadAllReduce::On<C>::On;
    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{dist::ThreadAllReduce::On<C>::communicator().with_timeout(timeout)};
    }
    [[nodiscard]] Apart<C> communicator() const noexcept {
      return Apart<C>{dist::ThreadAllReduce::On<C>::communicator()};
    }
  };
};

}  // namespace testing
