// Any bytes as the manifest of a checkpoint, and as its first line with the checksum that it needs: a manifest that is
// read as it is written again, of files in its folder, or a dist::Error.
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
  const dist::detail::ManifestReader reader{"manifest.json"};
  Manifest manifest;
  try {
    manifest = reader.read(all);
  } catch (const dist::FileError&) {
    return;
  }
  const Manifest again = reader.read(written(manifest));
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
