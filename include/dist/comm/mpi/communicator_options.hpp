#pragma once

#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/network.hpp>

namespace dist {

namespace mpi {

using CommunicatorOptions = NetworkOptions;

}  // namespace mpi

}  // namespace dist
