// Parses any bytes as a stream of frames, and as contents of the handshake and of call headers: frames, hellos,
// refusals and headers that are the same after writing them, or a FrameError.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include <dist/net/frame.hpp>
#include <dist/net/handshake.hpp>
#include <dist/rpc/rpc_session.hpp>

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

/// Parses a frame with a valid mark, version and checksum, so that lengths and payloads are reached.
void read_framed(Bytes payload) {
  std::vector<std::byte> bytes;
  append_frame(bytes, 7, payload);
  std::size_t used = 0;
  if (payload.size() > longest_handshake) return;
  const std::optional<Frame> frame = parse_frame(bytes, longest_handshake, used);
  require(frame && used == bytes.size() && std::ranges::equal(frame->payload, payload));
}

void read_hello(Bytes record) { require(std::ranges::equal(Handshake::from(record).record(), record)); }

void read_refusal(Bytes record) {
  const Refusal refusal = refusal_from(record);
  require(refusal_record(refusal).size() <= longest_handshake);
}

/// Checks that a header has the same payload after writing it again.
template <class Head>
void read_head(Bytes record, std::uint16_t type) {
  const std::vector<std::byte> again = Head::from(Frame{type, {record.begin(), record.end()}}).frame();
  require(again.size() <= dist::rpc::longest_head + longest_handshake);
  if (type == dist::rpc::request_frame) require(std::ranges::equal(Bytes{again}.subspan(frame_header_size), record));
}
void read_request(Bytes record) { read_head<dist::rpc::RequestHead>(record, dist::rpc::request_frame); }
void read_reply(Bytes record) { read_head<dist::rpc::ReplyHead>(record, dist::rpc::reply_frame); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span{data, size});
  for (const auto read : {read_frames, read_framed, read_hello, read_refusal, read_request, read_reply}) {
    try {
      read(bytes);
    } catch (const FrameError&) {
    }
  }
  return 0;
}
