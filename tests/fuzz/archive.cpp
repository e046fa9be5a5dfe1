// Any bytes as values of several types, whole and cut into pieces: the same value or the same ArchiveError, in memory that
// the bytes bound; and what was read is the same again after it was written.
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

/// The value, or nothing where the bytes are none.
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
  // Equal values have equal bytes, also where they have NaN.
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
