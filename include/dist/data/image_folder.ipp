#pragma once

#include <sys/stat.h>

#include <cstring>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/image_folder.hpp>
#include <dist/io/file.hpp>
#include <dist/io/random_access.hpp>

namespace dist::data::detail {

/// Returns the names in a folder that do not begin with a dot, sorted by their bytes. Throws FileError if it cannot be
/// read.
[[nodiscard]] inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names = io::folder_names(folder, [&](int error) {
    throw FileError(folder, "cannot be read as a folder", std::strerror(error),
                    "Give a folder that has one folder of images for each class");
  });
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  return names;
}

[[nodiscard]] inline bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Returns the part of a file name after its last dot, in lower case.
[[nodiscard]] inline std::string extension_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  std::string extension = dot == std::string::npos ? std::string{} : name.substr(dot + 1);
  for (char& letter : extension)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + ('a' - 'A'));
  return extension;
}

[[nodiscard]] inline bool has_extension(const AnyImageFormat& format, std::string_view extension) {
  return std::find(format.extensions.begin(), format.extensions.end(), extension) != format.extensions.end();
}

DIST_INLINE ImageFiles::ImageFiles(const std::string& folder, ImageFolderOptions options,
                                   std::vector<AnyImageFormat> formats)
    : options_(options) {
  std::vector<File> files;
  std::vector<std::string> classes;
  for (std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    if (!is_folder(path)) continue;
    const std::size_t before = files.size();
    for (const std::string& image : names_in(path)) {
      const std::string extension = extension_of(image);
      const auto has = [&](const AnyImageFormat& format) { return has_extension(format, extension); };
      if (std::none_of(formats.begin(), formats.end(), has))
        throw FileError(path + "/" + image, "is not in a format that this dataset reads",
                        concat("the names of images must end with: ",
                               joined(formats, ", ", [](const auto& format) { return joined(format.extensions); })),
                        "Move it elsewhere, or name its format in image_folder<...>");
      files.push_back({path + "/" + image, static_cast<std::int32_t>(classes.size())});
    }
    if (files.size() == before)
      throw FileError(path, "has no images", "the folder of a class is empty",
                      "Move it elsewhere, or put images into it");
    classes.push_back(std::move(name));
  }
  if (classes.empty())
    throw FileError(folder, "has no classes", "it contains no folders",
                    "Give a folder that has one folder of images for each class");
  formats_ = std::make_shared<const std::vector<AnyImageFormat>>(std::move(formats));
  files_ = std::make_shared<const std::vector<File>>(std::move(files));
  classes_ = std::make_shared<const std::vector<std::string>>(std::move(classes));
}

DIST_INLINE ImageFiles ImageFiles::shard(std::size_t shards, std::size_t shard) const {
  ImageFiles part = *this;
  part.files_ = std::make_shared<const std::vector<File>>(files_of_shard(*files_, shards, shard));
  return part;
}

DIST_INLINE void ImageFiles::read(std::size_t file, Tensor<std::uint8_t>& pixels) const {
  const std::string& path = (*files_)[file].path;
  const io::RandomAccessFile opened{path};
  std::vector<std::byte> bytes(static_cast<std::size_t>(opened.size()));
  bytes.resize(opened.read_at(0, bytes));
  const std::string_view content{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const std::string extension = extension_of(path);
  auto format = std::find_if(formats_->begin(), formats_->end(), [&](const AnyImageFormat& each) {
    return !each.signature.empty() && content.starts_with(each.signature);
  });
  if (format == formats_->end())
    format = std::find_if(formats_->begin(), formats_->end(),
                          [&](const AnyImageFormat& each) { return has_extension(each, extension); });
  pixels = format->decode(bytes, options_.channels, path, options_.max_elements);
}

DIST_INLINE void ImageFiles::read(std::size_t file, Tensor<float>& pixels) const {
  Tensor<std::uint8_t> stored;
  read(file, stored);
  pixels.resize(stored.shape());
  for (std::size_t i = 0; i < stored.size(); ++i) pixels[i] = static_cast<float>(stored[i]) / 255.0F;
}

}  // namespace dist::data::detail
