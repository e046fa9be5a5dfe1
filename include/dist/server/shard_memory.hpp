#pragma once

#include <cstddef>
#include <span>

#include <dist/core/short_list.hpp>
#include <dist/core/text.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/error.hpp>

namespace dist::server {

/// Where the elements of a shard lie, and those of its slots, while it is locked.
struct ShardMemory {
  io::ElementType type = io::ElementType::f32;
  std::size_t elements = 0;
  std::size_t row_size = 1;
  std::byte* weights = nullptr;
  dist::detail::ShortList<std::byte*, 4> slots = {};

  /// Throws StoreError unless the elements are of type `T`.
  template <class T>
  [[nodiscard]] std::span<T> weights_as() const {
    if (type != io::element_type<T>)
      throw StoreError(Problem::wrong_type, concat("An update for ", dtype_name<T>, " does not fit a shard"),
                       concat("its elements are ", io::to_string(type)), "Give values of the variable's element type");
    return {reinterpret_cast<T*>(weights), elements};
  }
};

}  // namespace dist::server
