#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/all_gather.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/memory_collectives.hpp>

namespace dist {

/// The collectives that members with shared memory do alike, whatever the policy: each reads where its peers' operands
/// are. A policy that derives from it requires `SharesMemory<C>`, in a sentence; a constraint here would come first.
template <class C>
class SharedMemoryCollectives : public Membership<C> {
 public:
  using Membership<C>::Membership;

  template <class T>
  void broadcast(std::size_t root, std::span<T> values) const {
    dist::broadcast(comm_, root, values);
  }
  template <class T>
  void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
    dist::all_gather(comm_, mine, counts, all);
  }
  template <class T>
  void all_gather_values(std::string_view operation, const T& mine, std::span<T> all_values) const {
    dist::all_gather_values(comm_, operation, mine, all_values);
  }

 protected:
  using Membership<C>::comm_;
};
template <class C>
SharedMemoryCollectives(C) -> SharedMemoryCollectives<C>;

}  // namespace dist
