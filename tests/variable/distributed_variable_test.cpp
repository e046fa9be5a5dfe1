#include <dist/variable/distributed_variable.hpp>

#include <type_traits>
#include <utility>

#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <doctest/doctest.h>
#include <conformance/variable.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(variables, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>, Make<ToOne, 2>,
                               Make<ToOne, 3>, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 8>);

// A variable is movable but not copyable (spec G10).
using Variable = dist::DistributedVariable<float, dist::OnWrite, dist::None>;
static_assert(!std::is_copy_constructible_v<Variable> && !std::is_copy_assignable_v<Variable>);
static_assert(std::is_nothrow_move_constructible_v<Variable> && std::is_nothrow_move_assignable_v<Variable>);

// A write returns nothing (spec G24).
static_assert(
    std::is_void_v<decltype(std::declval<Variable&>().assign_add(std::declval<dist::Default::Context&>(), 1.0f))>);
