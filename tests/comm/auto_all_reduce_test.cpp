#include <dist/comm/auto_all_reduce.hpp>

#include <doctest/doctest.h>
#include <conformance/cross_device_ops.hpp>

#include <type_traits>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::AutoAllReduce);

namespace {

/// Sees its peers' memory, but exchanges nothing with an announcement.
struct OnlyShares {
  [[nodiscard]] std::size_t rank() const { return 0; }
  [[nodiscard]] std::size_t size() const { return 1; }
  void barrier() const {}
  void reclaim() const noexcept {}
  template <class T>
  void publish(const dist::CollectiveCall&, T*, T* = nullptr) const {}
  template <class T>
  [[nodiscard]] T* peer(std::size_t, int) const {
    return nullptr;
  }
};

}  // namespace

TEST_CASE("the choice follows from what members can do (spec A04, H16, H23)") {
  CHECK(std::is_same_v<dist::AutoAllReduce::Chosen<dist::ThreadCommunicator>, dist::SharedMemoryAllReduce>);
  CHECK(std::is_same_v<dist::AutoAllReduce::Chosen<OnlyShares>, dist::RingAllReduce>);
}
