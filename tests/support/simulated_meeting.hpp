// Virtual ranks that agree on a call by the product's protocol, with messages that take virtual time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/messages/call_agreement.hpp>
#include <dist/core/error.hpp>

#include <support/simulated_network.hpp>

namespace support {

/// One virtual rank's part in all meetings.
class SimulatedMeeting {
 public:
  explicit SimulatedMeeting(const SimulatedNetwork::Communicator& comm)
      : comm_(comm), meeting_(comm.rank(), comm.size()), in_(partners()), out_(partners()) {}

  /// Returns when all ranks have arrived with the same call. Throws CollectiveMismatch if a call differs.
  void meet(const dist::CollectiveCall& call) {
    const auto advance = [&] {
      meeting_.advance([&](std::size_t partner, const CallAgreement::Message& message) { out_[partner] = message; });
    };
    meeting_.begin(call);
    advance();
    // In the same order on all ranks, each of which sends and receives one message at a time.
    for (std::size_t partner = 0; partner < partners(); ++partner) {
      auto receive = comm_.start_receive(bytes_of(in_[partner]), meeting_.schedule().from(partner));
      auto send = comm_.start_send(bytes_of(out_[partner]), meeting_.schedule().to(partner));
      comm_.wait(receive);
      comm_.wait(send);
      meeting_.receive(partner, in_[partner]);
      advance();
    }
    const bool differs = meeting_.state() == CallAgreement::State::different;
    const std::size_t other = meeting_.different_call().rank;
    meeting_.end();
    if (differs)
      throw dist::detail::different_calls("rank", dist::concat("rank ", comm_.rank(), " and rank ", other, " differ"));
  }
  [[nodiscard]] std::size_t partners() const noexcept { return meeting_.schedule().partners(); }

 private:
  using CallAgreement = dist::detail::CallAgreement;

  /// The whole message, though only a part is meaningful if all calls are equal.
  [[nodiscard]] static std::span<std::byte> bytes_of(CallAgreement::Message& message) {
    return std::as_writable_bytes(std::span{&message, 1});
  }

  SimulatedNetwork::Communicator comm_;
  CallAgreement meeting_;
  std::vector<CallAgreement::Message> in_;  // by partner
  std::vector<CallAgreement::Message> out_;
};

/// The virtual time until all ranks agree on a call, and the number of messages of one rank.
struct AgreementCost {
  double seconds = 0;
  std::size_t messages = 0;
};
[[nodiscard]] inline AgreementCost agreement_cost(std::size_t ranks, const dist::MessageCosts& costs) {
  SimulatedNetwork network{ranks, costs};
  const double seconds = network.run(
      [](const SimulatedNetwork::Communicator& comm) { SimulatedMeeting{comm}.meet({.operation = "barrier"}); });
  return {seconds, network.most_messages()};
}

}  // namespace support
