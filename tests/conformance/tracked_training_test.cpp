#include <conformance/tracked_training.hpp>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <conformance/paired.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(tracked_training, Make<dist::Default>, Make<Shared, 1>, Make<Shared, 2>, Make<Shared, 3>,
                               Make<Shared, 4>, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>, Make<Central, 4>,
                               Make<conformance::Paired, 3>, Make<conformance::Paired, 4>);

TEST_CASE("the slots of a network with owner-computed gradients are restored to the current owners") {
  for (auto make : {&Make<Shared, 1>::make, &Make<Shared, 2>::make, &Make<Shared, 3>::make})
    conformance::check_tracked_training<Shared, dist::nn::Adam, dist::nn::OwnerComputedGradients<4>>(make,
                                                                                                     dist::nn::Adam{});
}
