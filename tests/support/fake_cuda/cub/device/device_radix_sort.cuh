/// CUB's radix sort on streams of fake GPUs: an operation of the stream that sorts on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "../../handles.hpp"

namespace cub {

struct DeviceRadixSort {
  template <class Key, class Value>
  static cudaError_t SortPairs(void* storage, std::size_t& bytes, const Key* keys, Key* sorted_keys,
                               const Value* values, Value* sorted_values, std::size_t count, int, int end_bit,
                               cudaStream_t stream) {
    if (storage == nullptr) {
      bytes = 1;
      return cudaSuccess;
    }
    fake_cuda::put_for_library(
        stream, "cub::DeviceRadixSort::SortPairs",
        [=] {
          std::vector<std::pair<Key, Value>> pairs(count);
          for (std::size_t i = 0; i < count; ++i) pairs[i] = {keys[i], values[i]};
          const auto key = [end_bit](const auto& pair) { return pair.first & ((Key{1} << end_bit) - 1); };
          std::ranges::stable_sort(pairs, {}, key);
          for (std::size_t i = 0; i < count; ++i) std::tie(sorted_keys[i], sorted_values[i]) = pairs[i];
        },
        nullptr);
    return cudaSuccess;
  }
};

}  // namespace cub
