// Kernels whose machine code gates/machine_code_check.cmake reads. It finds them by their unique names.
#include <cstddef>

#include <dist/comm/cuda/policies.cuh>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/segments.hpp>
#include <dist/variable/slot_update.hpp>

using dist::IndexRange;

struct Saxpy {
  const float* x;
  float* y;
  float a;
  DIST_HD void operator()(std::size_t i) const { y[i] = a * x[i] + y[i]; }
};

extern "C" __global__ void __launch_bounds__(dist::cuda::block_threads)
    saxpy_by_hand(const float* const x, float* const y, const float a, const IndexRange range) {
  const std::size_t i = range.begin + std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < range.end) y[i] = a * x[i] + y[i];
}

using Adam = dist::SlotUpdate<dist::nn::Adam::Update<float, false>, float>;
constexpr dist::nn::detail::UpdateParts scaled_with_decay{.scales_gradient = true, .decays_weight = true};
using Extended = dist::nn::detail::ExtendedUpdate<dist::nn::Adam::Update<float, false>, float, scaled_with_decay>;
using SegmentedAdam = dist::nn::SegmentedUpdate<dist::SlotUpdate<Extended, float>>;
template <class Update, std::size_t Replicas>
using Directly =
    dist::detail::ReduceDirectly<float, dist::Sum, Update, Replicas, dist::detail::reduces_exactly<Update, Replicas>>;

struct FusedAdam2 : Directly<Adam, 2> {};
struct FusedAdam3 : Directly<Adam, 3> {};
struct FusedAdam4 : Directly<Adam, 4> {};
struct FusedAdam8 : Directly<Adam, 8> {};
struct FusedSegmentedAdam2 : Directly<SegmentedAdam, 2> {};
struct FusedSegmentedAdam8 : Directly<SegmentedAdam, 8> {};
struct AdamInPlace : dist::detail::UpdateInPlace<float, Adam> {};
struct AllReduce2 : Directly<dist::detail::TakeReduced, 2> {};
struct AllReduce8 : Directly<dist::detail::TakeReduced, 8> {};

template __global__ void dist::cuda::detail::for_each_kernel<Saxpy>(Saxpy, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<FusedAdam2>(FusedAdam2, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<FusedAdam3>(FusedAdam3, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<FusedAdam4>(FusedAdam4, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<FusedAdam8>(FusedAdam8, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<FusedSegmentedAdam2>(FusedSegmentedAdam2, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<FusedSegmentedAdam8>(FusedSegmentedAdam8, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<AdamInPlace>(AdamInPlace, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<AllReduce2>(AllReduce2, IndexRange);
template __global__ void dist::cuda::detail::for_each_kernel<AllReduce8>(AllReduce8, IndexRange);
