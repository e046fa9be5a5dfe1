// Sends any bytes as requests to a store, in a valid envelope: a reply, a StoreError or an ArchiveError, in bounded
// memory. The contents of the store keep their size.
#include <dist/server/shard_server.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <dist/nn/optimizers/adam.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/requests.hpp>

namespace {

namespace server = dist::server;
using dist::ArchiveReader;
using dist::ArchiveWriter;

using Adam = dist::nn::Adam::Update<float, false>;

/// Returns a number from the first bytes of the input, and removes these bytes.
template <class T>
T taken(std::span<const std::byte>& input) {
  T number{};
  const std::size_t size = std::min(sizeof number, input.size());
  std::copy_n(input.begin(), size, reinterpret_cast<std::byte*>(&number));
  input = input.subspan(size);
  return number;
}

struct Fuzzed {
  Fuzzed() {
    const auto create = [&](server::ShardId id, dist::io::ElementType type) {
      const server::detail::CreateHead head{
          {id, "w", 3, 2, 0}, type, server::detail::InitialValue::value, dist::io::bytes_of(type)};
      ArchiveWriter writer = envelope();
      writer.put(head);
      for (std::size_t i = 0; i < head.bytes; ++i) writer.put(std::uint8_t{0});
      call(&server::ShardServer::create, writer);
    };
    create(0, dist::io::ElementType::f32);
    create(1, dist::io::ElementType::i16);
    ArchiveWriter slots = envelope();
    slots.put(server::ShardId{0}).put(std::uint64_t{0}).put(std::vector<double>{0, 1});
    call(&server::ShardServer::ensure_slots, slots);
  }
  ArchiveWriter envelope() {
    ArchiveWriter writer;
    writer.put(server::detail::RequestHeader{store.incarnation(), 1, ++ordinal});
    return writer;
  }
  template <class Function>
  void call(Function function, const ArchiveWriter& request) {
    ArchiveReader reader{request.content()};
    try {
      static_cast<void>((store.*function)(reader));
    } catch (const dist::StoreError&) {
    } catch (const dist::ArchiveError&) {
    }
  }

  server::ShardServer store;
  std::uint64_t ordinal = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Fuzzed fuzzed;
  std::span<const std::byte> input = std::as_bytes(std::span{data, size});
  const auto method = taken<std::uint8_t>(input);
  ArchiveWriter request = fuzzed.envelope();
  const auto rest = [&] { request.put_bytes(input.data(), input.size()); };
  switch (method % 5) {
    case 0: {  // two pushes with a known update
      request.put(std::uint32_t{1 + method / 128u});
      for (int part = 0; part <= method / 128; ++part) {
        const auto shard = taken<std::uint8_t>(input);
        const auto form = static_cast<server::detail::PushEncoding>(taken<std::uint8_t>(input));
        const auto rows = taken<std::uint8_t>(input);
        const auto bytes = taken<std::uint16_t>(input);
        request.put(server::detail::PushHead{
            shard,
            form,
            rows,
            bytes,
            {taken<std::uint8_t>(input), taken<std::uint8_t>(input), taken<std::uint8_t>(input)}});
        switch (method / 8 % 4) {
          case 0:
            server::detail::TypedUpdate<Adam, float>{Adam{}}.write(request);
            break;
          case 1:
            server::detail::TypedUpdate<dist::Sum, float>{dist::sum}.write(request);
            break;
          case 2:
            server::detail::TypedUpdate<dist::detail::Divide, std::int16_t>{dist::detail::Divide{}}.write(request);
            break;
          default:
            server::detail::TypedUpdate<dist::Sum, double>{dist::sum}.write(request);
        }
        const std::size_t its = std::min<std::size_t>(input.size(), rows * 8u + bytes);
        request.put_bytes(input.data(), its);
        input = input.subspan(its);
      }
      rest();
      fuzzed.call(&server::ShardServer::push, request);
      break;
    }
    case 1:
      rest();
      fuzzed.call(&server::ShardServer::push, request);
      break;
    case 2: {  // pulls of existing shards, or any bytes
      request.put(std::uint32_t{method / 64u});
      for (int part = 0; part < method / 64; ++part) {
        const auto shard = taken<std::uint8_t>(input);
        const auto type = static_cast<dist::io::ElementType>(taken<std::uint8_t>(input));
        const auto rows = taken<std::uint8_t>(input);
        request.put(server::detail::PullHead{
            shard, type, rows == 0, rows, {std::uint64_t{taken<std::uint8_t>(input)} - 1, taken<std::uint8_t>(input)}});
        const std::size_t its = std::min<std::size_t>(input.size(), rows * 8u);
        request.put_bytes(input.data(), its);
        input = input.subspan(its);
      }
      rest();
      fuzzed.call(&server::ShardServer::pull, request);
      break;
    }
    case 3:
      rest();
      fuzzed.call(&server::ShardServer::staleness, request);
      fuzzed.call(&server::ShardServer::find, request);
      break;
    default: {  // a shard that is at most as large as its bytes
      const server::detail::CreateHead head{{2, "v", taken<std::uint8_t>(input), taken<std::uint8_t>(input), 0},
                                            static_cast<dist::io::ElementType>(taken<std::uint8_t>(input)),
                                            static_cast<server::detail::InitialValue>(taken<std::uint8_t>(input)),
                                            input.size()};
      request.put(head);
      rest();
      fuzzed.call(&server::ShardServer::create, request);
      ArchiveWriter drop = fuzzed.envelope();
      fuzzed.call(&server::ShardServer::drop, drop.put(std::vector<server::ShardId>{2}));
    }
  }
  ArchiveWriter list = fuzzed.envelope();
  ArchiveReader reader{list.content()};
  if (fuzzed.store.list(reader).size() < 100) std::abort();
  return 0;
}
