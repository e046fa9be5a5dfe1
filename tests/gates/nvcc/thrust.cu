// Algorithms of Thrust in the queue of a replica, as a program for GPUs calls them.
#include <dist/device/cuda/thrust_policy.cuh>

#include <thrust/reduce.h>
#include <thrust/sort.h>

#include <dist/comm/cuda/direct_all_reduce.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/mirrored.hpp>

using Replica = dist::ReplicaContext<dist::Mirrored<dist::DirectAllReduce, dist::Cuda>>;

void sort_and_sum(const Replica& replica, int* keys, float* values, std::size_t count, int* distinct, float* sums) {
  thrust::stable_sort_by_key(dist::thrust_policy(replica), keys, keys + count, values);
  thrust::reduce_by_key(dist::thrust_policy(replica), keys, keys + count, values, distinct, sums);
}
