/// Thrust's algorithms on streams of fake GPUs. The policies are Thrust's; an algorithm is an operation of the stream
/// that runs Thrust's host system, so that its order and its memory accesses are checked. Thrust's kernels are not
/// tested. Missing algorithms access GPU memory from the host, which terminates the process.
#pragma GCC system_header  // #include_next is an extension
#pragma once

#include_next <thrust/system/cuda/execution_policy.h>

#include <cuda_runtime_api.h>
#include <thrust/pair.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/unique.h>

#include "../../../handles.hpp"

namespace fake_cuda {

template <class Work>
void put_algorithm(const thrust::cuda_cub::execute_on_stream_nosync& policy, const char* name, Work work) {
  put_for_library(get_stream(policy), name, std::move(work), nullptr);
}
/// Submits `work` to the policy's stream, and waits for its result, as Thrust does.
template <class Work>
auto result_of_algorithm(const thrust::cuda_cub::execute_on_stream_nosync& policy, const char* name, Work work) {
  decltype(work()) result{};
  put_algorithm(policy, name, [&] { result = work(); });
  static_cast<void>(cudaStreamSynchronize(get_stream(policy)));
  return result;
}

}  // namespace fake_cuda

// Thrust finds these functions among the algorithms of a policy.
THRUST_NAMESPACE_BEGIN
namespace cuda_cub {

template <class Keys, class Values>
void sort_by_key(const execute_on_stream_nosync& policy, Keys first, Keys last, Values values) {
  fake_cuda::put_algorithm(policy, "sort_by_key", [=] { thrust::sort_by_key(thrust::cpp::par, first, last, values); });
}
template <class Keys, class Values>
void stable_sort_by_key(const execute_on_stream_nosync& policy, Keys first, Keys last, Values values) {
  fake_cuda::put_algorithm(policy, "stable_sort_by_key",
                           [=] { thrust::stable_sort_by_key(thrust::cpp::par, first, last, values); });
}
template <class In, class Out>
Out inclusive_scan(const execute_on_stream_nosync& policy, In first, In last, Out result) {
  fake_cuda::put_algorithm(policy, "inclusive_scan",
                           [=] { thrust::inclusive_scan(thrust::cpp::par, first, last, result); });
  return result + (last - first);
}
template <class Keys, class Values, class KeysOut, class ValuesOut>
thrust::pair<KeysOut, ValuesOut> reduce_by_key(const execute_on_stream_nosync& policy, Keys first, Keys last,
                                               Values values, KeysOut keys_out, ValuesOut values_out) {
  return fake_cuda::result_of_algorithm(policy, "reduce_by_key", [=] {
    return thrust::reduce_by_key(thrust::cpp::par, first, last, values, keys_out, values_out);
  });
}
template <class Keys, class Values, class KeysOut, class ValuesOut>
thrust::pair<KeysOut, ValuesOut> unique_by_key_copy(const execute_on_stream_nosync& policy, Keys first, Keys last,
                                                    Values values, KeysOut keys_out, ValuesOut values_out) {
  return fake_cuda::result_of_algorithm(policy, "unique_by_key_copy", [=] {
    return thrust::unique_by_key_copy(thrust::cpp::par, first, last, values, keys_out, values_out);
  });
}

}  // namespace cuda_cub
THRUST_NAMESPACE_END
