// expect: a communicator must report failures, with empty functions if it has no peers
#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/thread/communicator.hpp>

struct Own : dist::ThreadCommunicator {
  using ThreadCommunicator::ThreadCommunicator;
  Own with_timeout(std::chrono::nanoseconds) const { return *this; }
#ifndef CONTROL
  bool is_broken() const = delete;
  bool is_brocken() const noexcept { return false; }
#endif
};

std::size_t size_of(const dist::ReductionToOneDevice::On<Own>& ops) { return ops.communicator().size(); }

int main() {}
