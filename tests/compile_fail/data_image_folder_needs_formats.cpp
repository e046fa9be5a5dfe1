// expect: image_folder: name the formats to read, such as image_folder<io::Png, io::Jpeg>(folder)
#include <dist/data/image_folder.hpp>

struct Format {
  static constexpr const char* extensions[] = {"x"};
#ifdef CONTROL
  static dist::Tensor<std::uint8_t> decode(std::span<const std::byte>, std::size_t, const std::string&, std::size_t);
#endif
};

int main() {
  static_cast<void>([] { return dist::data::image_folder<Format>("folder"); });
}
