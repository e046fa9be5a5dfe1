#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/weights_file.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/file.hpp>

namespace dist::detail {

/// Stands for a decimal number in the names of a WeightSource.
inline constexpr std::string_view number_place = "{}";

[[nodiscard]] inline std::size_t count_number_places(std::string_view pattern) {
  std::size_t count = 0;
  for (std::size_t at = pattern.find(number_place); at != pattern.npos;
       at = pattern.find(number_place, at + number_place.size()))
    ++count;
  return count;
}

/// Returns the numbers of a key in the places of `{}` in a pattern, or nothing if the key does not match it.
[[nodiscard]] inline std::optional<std::vector<std::string_view>> numbers_in(std::string_view key,
                                                                             std::string_view pattern) {
  std::vector<std::string_view> numbers;
  for (std::size_t at = pattern.find(number_place); at != pattern.npos; at = pattern.find(number_place)) {
    if (!key.starts_with(pattern.substr(0, at))) return std::nullopt;
    key.remove_prefix(at);
    pattern.remove_prefix(at + number_place.size());
    numbers.push_back(key.substr(0, key.find_first_not_of("0123456789")));
    if (numbers.back().empty()) return std::nullopt;
    key.remove_prefix(numbers.back().size());
  }
  if (key != pattern) return std::nullopt;
  return numbers;
}

/// Returns a pattern with numbers in the places of `{}`.
[[nodiscard]] inline std::string with_numbers(std::string_view pattern, std::span<const std::string_view> numbers) {
  std::string name;
  for (const std::string_view number : numbers) {
    const std::size_t at = pattern.find(number_place);
    name.append(pattern.substr(0, at)).append(number);
    pattern.remove_prefix(at + number_place.size());
  }
  return name.append(pattern);
}

/// Matches our keys with the names in the file.
class WeightNames {
 public:
  /// Throws InvalidArgument if the two names of a source do not have `{}` equally often.
  WeightNames(const WeightsFile& file, const LoadWeightsOptions& options)
      : file_(file), options_(options), left_(file.names()), present_(left_) {
    for (const WeightSource& source : options_.names) {
      const std::size_t ours = count_number_places(source.ours), theirs = count_number_places(source.theirs);
      if (ours != theirs)
        throw InvalidArgument("LoadWeightsOptions::names has a name with more numbers '{}' than the other one",
                              concat(quoted(source.ours), " has ", ours, ", ", quoted(source.theirs), " has ", theirs),
                              "Write '{}' in both names, once for each number");
    }
  }

  /// The name and the source for one of our keys.
  struct Found {
    const WeightSource* source = nullptr;  // null if name and layout are ours
    std::string theirs;
  };
  /// Returns nothing if the key keeps its value, or is missing in the file, which `check` reports. Throws
  /// InvalidArgument if the options have two sources.
  [[nodiscard]] std::optional<Found> take(std::string_view key) {
    keys_.emplace_back(key);
    for (const std::string& kept : options_.keep)
      if (numbers_in(key, kept)) return std::nullopt;
    Found found{nullptr, std::string{key}};
    for (const WeightSource& source : options_.names) {
      const auto numbers = numbers_in(key, source.ours);
      if (!numbers) continue;
      if (found.source != nullptr)
        throw InvalidArgument(concat("LoadWeightsOptions::names has two sources for ", quoted(key)),
                              concat(quoted(found.source->theirs), " and ", quoted(source.theirs)), "Keep one of them");
      found = {&source, with_numbers(source.theirs, *numbers)};
    }
    if (std::find(present_.begin(), present_.end(), found.theirs) == present_.end()) {
      missing_.push_back(found.theirs == key ? quoted(key) : concat(quoted(found.theirs), " for ", quoted(key)));
      return std::nullopt;
    }
    std::erase(left_, found.theirs);
    return found;
  }
  /// Throws if the options contain unknown keys, the file lacks tensors, or it has unused ones. Returns the unused ones
  /// if ignored.
  [[nodiscard]] std::vector<std::string> check() const {
    for (const WeightSource& source : options_.names) require_key(source.ours);
    for (const std::string& key : options_.keep) require_key(key);
    if (!missing_.empty())
      throw FileError(
          file_.path(), concat("lacks weights: ", joined(missing_)), io::listed_names(present_),
          "Give their names in the file in LoadWeightsOptions::names, or list them in LoadWeightsOptions::keep");
    if (!left_.empty() && !options_.ignore_superfluous) {
      std::vector<std::string> superfluous;
      for (const std::string& name : left_) superfluous.push_back(quoted(name));
      throw FileError(file_.path(), concat("has unused weights: ", joined(superfluous)), "no key matches them",
                      "Load it into the network that it belongs to, or set LoadWeightsOptions::ignore_superfluous");
    }
    return left_;
  }

 private:
  /// Joins the first ten.
  [[nodiscard]] static std::string joined(const std::vector<std::string>& names) {
    constexpr std::size_t listed = 10;
    const std::span<const std::string> all{names};
    std::string first = dist::joined(all.first(std::min(listed, all.size())));
    return all.size() > listed ? concat(first, " and ", all.size() - listed, " more") : first;
  }
  void require_key(const std::string& key) const {
    for (const std::string& each : keys_)
      if (numbers_in(each, key)) return;
    throw InvalidArgument(concat("The options of load_weights name ", quoted(key), ", which matches no key"),
                          concat("the keys are ", joined(keys_)), "Use one of these keys");
  }

  const WeightsFile& file_;
  const LoadWeightsOptions& options_;
  std::vector<std::string> left_;  // unused, in the file
  std::vector<std::string> present_;
  std::vector<std::string> keys_;
  std::vector<std::string> missing_;
};

/// Returns a range of a tensor in the file along an axis. Throws ShapeMismatch if the axis or the range does not exist.
[[nodiscard]] inline AnyTensor rows_of(const AnyTensor& values, IndexRange rows, std::size_t axis,
                                       const WeightsFile& file, const WeightNames::Found& found) {
  const Shape& shape = values.shape;
  const bool has_axis = axis < shape.rank();
  if (!has_axis || rows.begin > rows.end || rows.end > shape[axis])
    throw ShapeMismatch(
        concat(quoted(found.theirs), " of the file '", file.path(), "' has no ",
               has_axis ? concat("range ", rows.begin, " to ", rows.end, " along axis ", axis) : concat("axis ", axis)),
        concat("its shape is ", to_string(shape)), "Give rows and a rows_axis that it has");
  std::size_t extents[Shape::max_rank] = {};
  std::copy_n(shape.extents().data(), shape.rank(), extents);
  extents[axis] = rows.size();
  std::size_t row_bytes = io::bytes_of(values.type);
  for (std::size_t inner = axis + 1; inner < shape.rank(); ++inner) row_bytes *= shape[inner];
  const Shape part{std::span<const std::size_t>{extents, shape.rank()}};
  return AnyTensor::filled_by(values.type, part, [&](std::span<std::byte> to) {
    const std::size_t block = rows.size() * row_bytes;
    for (std::size_t done = 0, from = rows.begin * row_bytes; done < to.size();
         done += block, from += shape[axis] * row_bytes)
      std::copy_n(values.bytes.data() + from, block, to.data() + done);
  });
}

/// Returns the values of a tensor of the file in our layout. `wanted` is our shape, if it is known. Throws
/// ShapeMismatch if the shape differs.
[[nodiscard]] inline AnyTensor arranged(AnyTensor values, std::string_view key, const std::optional<Shape>& wanted,
                                        const WeightsFile& file, const WeightNames::Found& found) {
  const WeightSource* const source = found.source;
  if (source != nullptr && source->rows) values = rows_of(values, *source->rows, source->rows_axis, file, found);
  if (source != nullptr && source->seen_as) {
    if (source->seen_as->elements() != values.shape.elements())
      throw ShapeMismatch(concat(quoted(found.theirs), " of the file '", file.path(), "' cannot be reshaped to ",
                                 to_string(*source->seen_as)),
                          concat("its shape is ", to_string(values.shape)),
                          "Use a shape with the same number of elements");
    values.shape = *source->seen_as;
  }
  if (source != nullptr && !source->axes.empty()) values = values.transposed(source->axes);
  if (wanted) {
    if (source != nullptr && source->seen_as && values.shape.elements() == wanted->elements()) values.shape = *wanted;
    if (values.shape != *wanted)
      throw ShapeMismatch(
          concat(quoted(key), " does not have the shape of ", quoted(found.theirs), " of the file '", file.path(), "'"),
          concat("it is ", to_string(*wanted), ", the file's is ", to_string(values.shape),
                 source != nullptr && !source->axes.empty() ? " after the permutation of its axes" : ""),
          "Load it into the network that it belongs to, or give the order of its axes in "
          "LoadWeightsOptions::names");
  }
  return values;
}

DIST_INLINE void write_weights_like(const std::string& like, LoadWeightsOptions options, const std::string& path,
                                    const Snapshot& ours) {
  const WeightsFile file{like};
  options.ignore_superfluous = true;
  WeightNames names{file, options};
  std::vector<SavedTensor> theirs;
  for (const std::string& name : file.names()) {
    const io::SafetensorsEntry& entry = file.safetensors_of(name).entry(name);
    if (!entry.type)
      throw FileError(like, concat("has a tensor of an unknown type, ", quoted(name)), concat("it is ", entry.dtype),
                      "Convert the tensor to another type");
    theirs.push_back({file.read(name, *entry.type), name});
  }
  for (const SavedTensor& tensor : ours.local_tensors()) {
    const auto found = names.take(tensor.key);
    if (!found) continue;
    AnyTensor& whole =
        *std::find_if(theirs.begin(), theirs.end(), [&](const SavedTensor& each) { return each.key == found->theirs; });
    // The place in the file's tensor of each of our elements.
    Tensor<std::int64_t> all{whole.shape};
    std::iota(all.data(), all.data() + all.size(), std::int64_t{0});
    const AnyTensor places = arranged(AnyTensor::of(std::move(all)), tensor.key, tensor.shape, file, *found);
    const std::size_t size = io::bytes_of(whole.type), count = tensor.shape.elements();
    std::vector<std::byte> converted(count * size);
    const std::size_t fitting =
        io::detail::convert_elements(tensor.type, tensor.bytes.data(), whole.type, converted.data(), count);
    if (fitting < count)
      throw InvalidArgument(
          concat(quoted(tensor.key), " cannot be saved as ", to_string(whole.type)),
          concat("the type of ", quoted(found->theirs), " of the file '", like, "' cannot hold element ", fitting),
          "Give a file with a wider type");
    whole = AnyTensor::filled_by(whole.type, whole.shape, [&](std::span<std::byte> to) {
      std::copy_n(whole.bytes.data(), to.size(), to.data());
      const auto place = places.view<std::int64_t>();
      for (std::size_t i = 0; i < count; ++i)
        std::copy_n(converted.data() + i * size, size, to.data() + static_cast<std::size_t>(place[i]) * size);
    });
  }
  static_cast<void>(names.check());
  write_weights(path, theirs, file.safetensors_of({}).metadata());
}

DIST_INLINE std::vector<std::string> load_weights(const AnyStrategy& strategy, WalkLeaves walk, const std::string& path,
                                                  const LoadWeightsOptions& options) {
  std::vector<AnyTensor> loaded;  // in the order of the walk; without owner if the key keeps its value
  std::vector<std::string> superfluous;
  strategy.run_collectively([&] {
    const WeightsFile file{path};
    WeightNames names{file, options};
    std::vector<std::optional<WeightNames::Found>> found;
    walk([&](std::string_view key, AnyLeaf&, bool) { found.push_back(names.take(key)); });
    superfluous = names.check();
    std::uint32_t checksum = 0;
    walk([&](std::string_view key, AnyLeaf& leaf, bool) {
      const auto& source = found[loaded.size()];
      AnyTensor& values = loaded.emplace_back();
      if (!source) return;
      values = arranged(file.read(source->theirs, leaf.type()), key, leaf.shape(), file, *source);
      leaf.require_restorable(values.shape);
      checksum = io::crc32c(values.bytes, checksum);
    });
    std::uint64_t of_first[1] = {checksum};
    strategy.broadcast(of_first);
    if (of_first[0] != checksum)
      throw WrongStrategy("Processes load different weights",
                          "the file of this process differs from the file of the first process",
                          "Load the same file in all processes");
    strategy.barrier();  // no process begins before all have checked
  });
  strategy.run_collectively([&] {
    strategy.in_scope([&](const void* scope) {
      std::size_t next = 0;
      walk([&](std::string_view, AnyLeaf& leaf, bool) {
        const AnyTensor& values = loaded[next++];
        if (values.owner != nullptr) leaf.restore(scope, values);
      });
    });
  });
  return superfluous;
}

}  // namespace dist::detail
