// Parses any bytes as the manifest of a checkpoint, and as its first line with the correct checksum. Results: a
// manifest of files in its folder, which is the same after writing and reading it, or a dist::Error.
#include <dist/checkpoint/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view all) {
  using dist::detail::Manifest;
  const auto parse = [](std::string_view text) { return dist::detail::parse_manifest("manifest.json", text); };
  Manifest manifest;
  try {
    manifest = parse(all);
  } catch (const dist::FileError&) {
    return;
  }
  const Manifest again = parse(written(manifest));
  require(again.id == manifest.id && again.serial == manifest.serial && again.files.size() == manifest.files.size());
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const dist::detail::ShardFile& file = manifest.files[i];
    require(file.name == again.files[i].name && file.bytes == again.files[i].bytes &&
            file.header_checksum == again.files[i].header_checksum);
    require(!file.name.empty() && file.name.find('/') == std::string::npos && file.name != "." && file.name != "..");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  read(bytes);
  read(dist::concat(bytes, "\ncrc32c ", dist::detail::hexadecimal(dist::detail::checksum_of(bytes)), "\n"));
  return 0;
}
