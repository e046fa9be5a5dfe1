#include <conformance/checkpoint.hpp>

#include <cstddef>
#include <string>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

namespace nn = dist::nn;
using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(checkpoint, Make<dist::Default>, Make<Shared, 1>, Make<Shared, 2>, Make<Shared, 3>,
                               Make<Shared, 4>, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>);

TEST_CASE("the slots of every optimizer, and the state of its options, are saved and restored") {
  const support::TemporaryFolder folder;
  Shared three{3};
  Central two{2};
  const auto check = [&](auto function, bool same_bits = true) {
    using Function = decltype(function);
    CAPTURE(Function::name);
    conformance::TrackedTraining<Shared, Function> training{three, function};
    training.train(5);
    dist::Checkpoint checkpoint{three};
    checkpoint.add("training", training).save(folder.path("saved"));
    const support::Saved kept{three, training};
    conformance::TrackedTraining<Central, Function> restored{two, function, 2};
    dist::Checkpoint restoring{two};
    restoring.add("training", restored).restore(folder.path("saved"));
    CHECK(restoring.unrestored().empty());
    const support::Saved again{two, restored};
    for (const std::string& key : kept.keys())
      if (same_bits || !key.starts_with("optimizer/accumulated/total/")) CHECK_MESSAGE(again.same(kept, key), key);
    training.train(2);
    restored.train(2);
    const support::Saved one{three, training};
    const support::Saved other{two, restored};
    CHECK(conformance::difference(one, other, "network/dense/kernel") < 1e-9);
  };
  check(nn::SGD{});
  check(nn::SGD{.momentum = 0.9f});
  check(nn::RMSprop{});
  check(nn::RMSprop{.momentum = 0.5f, .centered = true});
  check(nn::Adam{});
  check(nn::Adam{.amsgrad = true});
  check(nn::AdamW{});
  check(nn::With{nn::SGD{.momentum = 0.9f}, nn::AverageWeights{}});
  check(nn::With{nn::Adam{}, nn::AccumulateGradients{2}}, false);
}
