#include <dist/context/subgroup.hpp>

#include <dist/dist.hpp>

#include <conformance/make_strategy.hpp>
#include <conformance/subgroups.hpp>

#include <doctest/doctest.h>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(subgroups, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>,
                               Make<dist::CentralStorage<dist::Cpu>, 3>);
