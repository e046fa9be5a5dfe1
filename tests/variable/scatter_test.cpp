#include <dist/variable/scatter.hpp>

#include <dist/comm/reduction_to_one_device.hpp>
#include <dist/comm/shared_memory_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <doctest/doctest.h>
#include <conformance/variable_scatter.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::SharedMemoryAllReduce>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_scatter, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>, Make<ToOne, 3>,
                               Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 8>);
