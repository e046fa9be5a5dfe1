// Sends any bytes as messages of coordinators to a serving process, alternating with valid messages. The process
// answers, keeps, or rejects each message with an ArchiveError, and keeps the coordinator that it last welcomed.
#include <dist/server/lifeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/rpc/local_transport.hpp>

namespace {

using dist::Local;
using dist::server::detail::HandshakeReply;
using dist::server::detail::HandshakeRequest;
using dist::server::detail::HandshakeStatus;
using Lifeline = dist::server::Lifeline<Local::Exchange>;
using State = Lifeline::State;

/// Ends the program if the process violates a rule.
void must(bool holds) {
  if (!holds) std::abort();
}

struct Fuzzed {
  /// A call that returns at once, unless the process keeps it.
  Local::Call call(std::string_view method, std::span<const std::byte> bytes) {
    return channel.start(method, {&bytes, 1}, {});
  }
  void refuse_or_answer(std::string_view method, std::span<const std::byte> bytes) {
    Local::Call call = this->call(method, bytes);
    if (!call.is_done()) return call.cancel();
    try {
      call.wait();
    } catch (const dist::RpcError& error) {
      must(error.thrown() == "dist::ArchiveError");
    }
  }

  Lifeline lifeline{dist::Task{dist::TaskType::worker, 0}, 1};
  Local::Server server{{"here", "1"}, {}, lifeline.methods()};
  Local::Channel channel{{"here", "1"}, {}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Fuzzed fuzzed;
  const std::span<const std::byte> input = std::as_bytes(std::span{data, size}).subspan(1);
  constexpr std::string_view methods[] = {"lifeline.greet", "lifeline.attend", "lifeline.leave"};
  const std::string_view method = methods[data[0] % 3];
  fuzzed.refuse_or_answer(method, input);
  const bool may_greet = method == methods[0];
  must(may_greet || fuzzed.lifeline.standing().state == State::waiting);

  // The input, after this program's identity.
  std::vector<std::byte> greeting = dist::to_bytes(dist::binary_identity());
  greeting.insert(greeting.end(), input.begin(), input.end());
  fuzzed.refuse_or_answer(methods[0], greeting);
  if (fuzzed.lifeline.standing().state == State::attended) return 0;  // the input is a greeting

  const auto greet = dist::ArchiveWriter{}.put(dist::binary_identity()).put(HandshakeRequest{7, "worker 0"}).take();
  const auto welcome = dist::from_bytes<HandshakeReply>(fuzzed.call(methods[0], greet).reply().pieces());
  must(welcome.verdict == HandshakeStatus::welcome);
  const std::vector<std::byte> number = dist::to_bytes(std::uint64_t{7});
  const Local::Call attending = fuzzed.call(methods[1], number);
  must(!attending.is_done());
  // The input is a valid message of this coordinator: its number, or its Leave with any status.
  constexpr std::size_t of_leave = sizeof(std::uint64_t) + sizeof(std::int32_t);
  const bool starts_with_number = std::ranges::equal(input.first(std::min(input.size(), number.size())), number);
  if (starts_with_number && (input.size() == number.size() || input.size() == of_leave)) return 0;
  for (const std::string_view again : methods) fuzzed.refuse_or_answer(again, input);
  must(!attending.is_done() && fuzzed.lifeline.standing().state == State::attended);
  return 0;
}
