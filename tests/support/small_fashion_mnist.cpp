// Writes the four files of a small and easy Fashion-MNIST into a given folder, for examples on platforms where a step
// is slow. The images are noise with a bright rectangle, whose position depends on the class.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <vector>

#include <dist/core/random.hpp>

namespace {

using Bytes = std::vector<char>;

/// Writes the header of a file of bytes with these extents, followed by the bytes.
void write(const std::filesystem::path& file, std::initializer_list<std::uint32_t> extents, const Bytes& bytes) {
  Bytes head{0, 0, 8, static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents)
    for (const int shift : {24, 16, 8, 0}) head.push_back(static_cast<char>(extent >> shift & 0xff));
  std::ofstream out{file, std::ios::binary};
  out.write(head.data(), static_cast<std::streamsize>(head.size()));
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out.flush();
}

void write_split(const std::filesystem::path& folder, const char* name, std::uint32_t count, std::uint64_t stream) {
  constexpr std::uint32_t side = 28, classes = 10;
  const dist::RandomStream random{17, stream};
  Bytes images, labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t label = i % classes;
    labels.push_back(static_cast<char>(label));
    const std::uint32_t top = 3 + label / 5 * 13, left = 1 + label % 5 * 5;
    for (std::uint32_t row = 0; row < side; ++row)
      for (std::uint32_t column = 0; column < side; ++column) {
        const bool is_bright = row - top < 8 && column - left < 5;
        const auto noise = static_cast<std::uint32_t>(30 * random.uniform<float>((i * side + row) * side + column));
        images.push_back(static_cast<char>(noise + (is_bright ? 220 : 0)));
      }
  }
  const std::filesystem::path start = folder / name;
  write(start.string() + "-images-idx3-ubyte", {count, side, side}, images);
  write(start.string() + "-labels-idx1-ubyte", {count}, labels);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 1;
  const std::filesystem::path folder{arguments[1]};
  std::filesystem::create_directories(folder);
  write_split(folder, "train", 1280, 1);
  write_split(folder, "t10k", 256, 2);
}
