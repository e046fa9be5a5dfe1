// Decodes any bytes as values of several types, whole and in pieces: both give the same value or an ArchiveError, in
// memory bounded by the bytes. A decoded value encodes to the same bytes.
#include <dist/server/archive.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace rpc = dist::rpc;

void require(bool holds) {
  if (!holds) std::abort();
}

enum class Colour : std::uint8_t { red, green };
struct Part {
  std::string name;
  std::optional<std::vector<std::int16_t>> numbers;
  std::array<bool, 3> flags;
};
struct Node {
  std::vector<Node> children;
  Colour colour;
};

/// Returns the value, or nothing if the bytes are invalid.
template <class T, class Bytes>
std::optional<T> value_of(const Bytes& bytes) {
  try {
    return dist::from_bytes<T>(bytes);
  } catch (const dist::ArchiveError&) {
    return std::nullopt;
  }
}

template <class T>
void check(std::span<const std::byte> bytes) {
  const std::optional<T> value = value_of<T>(bytes);
  std::vector<rpc::Chunk> pieces;
  for (std::size_t at = 0, size = 0; at < bytes.size(); at += size, size = (size + 1) % 7)
    pieces.push_back(bytes.subspan(at, std::min(size, bytes.size() - at)));
  const std::optional<T> again = value_of<T>(pieces);
  require(value.has_value() == again.has_value());
  if (!value) return;
  // Compares encoded bytes, because NaN is not equal to itself.
  const std::vector<std::byte> written = dist::to_bytes(*value);
  require(written == dist::to_bytes(*again));
  require(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span{data, size});
  check<std::vector<std::string>>(bytes);
  check<std::tuple<Part, std::pair<double, Colour>>>(bytes);
  check<std::vector<std::optional<std::array<Part, 2>>>>(bytes);
  check<Node>(bytes);
  check<std::vector<dist::Tensor<float>>>(bytes);
  check<dist::Tensor<bool>>(bytes);
  check<dist::IndexedSlices<double>>(bytes);
  return 0;
}
