// Any bytes as a stream of frames, and as what the handshake carries: frames that are written again the same, a hello or
// a refusal that is, or a FrameError.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include <dist/net/frame.hpp>
#include <dist/net/hello.hpp>

namespace {

using namespace dist::net;
using Bytes = std::span<const std::byte>;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_frames(Bytes stream) {
  for (;;) {
    std::size_t used = 0;
    const std::optional<Frame> frame = parse_frame(stream, longest_handshake, used);
    if (!frame) {
      require(used == 0);
      return;
    }
    require(frame->payload.size() <= longest_handshake);
    std::vector<std::byte> again;
    append_frame(again, frame->type, frame->payload);
    require(std::ranges::equal(again, stream.first(used)));
    stream = stream.subspan(used);
  }
}

/// A frame whose mark, version and checksum are right, so that lengths and payloads are reached.
void read_framed(Bytes payload) {
  std::vector<std::byte> bytes;
  append_frame(bytes, 7, payload);
  std::size_t used = 0;
  if (payload.size() > longest_handshake) return;
  const std::optional<Frame> frame = parse_frame(bytes, longest_handshake, used);
  require(frame && used == bytes.size() && std::ranges::equal(frame->payload, payload));
}

void read_hello(Bytes record) { require(std::ranges::equal(Hello::from(record).record(), record)); }

void read_refusal(Bytes record) {
  const Refusal refusal = refusal_from(record);
  require(refusal_record(refusal).size() <= longest_handshake);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span{data, size});
  for (const auto read : {read_frames, read_framed, read_hello, read_refusal}) {
    try {
      read(bytes);
    } catch (const FrameError&) {
    }
  }
  return 0;
}
