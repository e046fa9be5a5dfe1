#include <dist/checkpoint/save_weights_like.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/io/safetensors_writer.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/distributed_variable.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

using dist::io::ElementType;
using dist::io::Safetensors;

namespace {

/// Writes the file of another program: a fused weight [2, 6] in half precision, a matrix, and a number that we lack.
std::string theirs(const support::TemporaryFolder& folder) {
  const std::string path = folder.path("theirs.safetensors");
  dist::io::SafetensorsWriter file{
      path,
      {{"fused", ElementType::f16, {2, 6}}, {"matrix", ElementType::f64, {3, 2}}, {"count", ElementType::i64, {}}},
      {{"format", "pt"}}};
  std::vector<dist::Float16> fused;
  for (int i = 0; i < 12; ++i) fused.emplace_back(static_cast<float>(i));
  file.append(std::span<const dist::Float16>{fused});
  file.append(dist::Tensor<double>{{6}, {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}}.elements());
  file.append(dist::Tensor<std::int64_t>{{1}, {100}}.elements());
  file.commit();
  return path;
}

/// Weights of the shapes [2, 2] and [2, 3].
template <class S>
struct Ours {
  explicit Ours(S& strategy)
      : key(strategy.template variable<float, dist::OnWrite, dist::Mean>({2, 2}, 0.0F)),
        kernel(strategy.template variable<float, dist::OnWrite, dist::Mean>({2, 3}, 0.0F)) {}
  void track(auto& visit) {
    visit("h0/key", key);
    visit("kernel", kernel);
    visit("epoch", epoch);
  }
  dist::DistributedVariable<float, dist::OnWrite, dist::Mean> key, kernel;
  std::int64_t epoch = 3;
};
dist::LoadWeightsOptions options_of(std::vector<std::size_t> axes = {1, 0}) {
  return {.names = {{.ours = "h0/key", .theirs = "fused", .rows = dist::IndexRange{2, 4}, .rows_axis = 1},
                    {"kernel", "matrix", std::move(axes)}},
          .keep = {"epoch"},
          .ignore_superfluous = true};
}

}  // namespace

TEST_CASE("weights are saved in the form of the file from which they were loaded") {
  const support::TemporaryFolder folder;
  const std::string like = theirs(folder), path = folder.path("saved.safetensors");
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  Ours ours{strategy};
  const auto options = options_of();
  dist::load_weights(strategy, ours, like, options);
  dist::save_weights_like(strategy, ours, path, like, options);
  CHECK(folder.read("saved.safetensors") == folder.read("theirs.safetensors"));

  ours.key.assign(strategy.scope(), dist::Tensor<float>{{2, 2}, {20, 30, 80, 90}});
  ours.kernel.assign(strategy.scope(), dist::Tensor<float>{{2, 3}, {1, 2, 3, 4, 5, 6}});
  dist::save_weights_like(strategy, ours, path, like, options);
  const Safetensors file{path};
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.entry("fused").type == ElementType::f16);
  CHECK(file.read_converted<float>("fused") == dist::Tensor<float>{{2, 6}, {0, 1, 20, 30, 4, 5, 6, 7, 80, 90, 10, 11}});
  CHECK(file.read<double>("matrix") == dist::Tensor<double>{{3, 2}, {1, 4, 2, 5, 3, 6}});
  CHECK(file.read<std::int64_t>("count")[0] == 100);
  Ours loaded{strategy};
  dist::load_weights(strategy, loaded, path, options);
  CHECK(loaded.kernel.whole(strategy.scope()) == ours.kernel.whole(strategy.scope()));
}

TEST_CASE("a save in the form of a file that does not fit reports the reason") {
  const support::TemporaryFolder folder;
  const std::string like = theirs(folder), path = folder.path("saved.safetensors");
  dist::Default strategy;
  Ours ours{strategy};
  CHECK_THROWS_WITH_AS(dist::save_weights_like(strategy, ours, path, like, options_of({})),
                       doctest::Contains("it is [2, 3], the file's is [3, 2]"), dist::ShapeMismatch);
  CHECK_THROWS_WITH_AS(dist::save_weights_like(strategy, ours, path, like),
                       doctest::Contains("lacks weights: 'h0/key', 'kernel', 'epoch'"), dist::FileError);
  ours.key.assign(strategy.scope(), 1e6F);
  CHECK_THROWS_WITH_AS(dist::save_weights_like(strategy, ours, path, like, options_of()),
                       doctest::Contains("'h0/key' cannot be saved as f16"), dist::InvalidArgument);
  dist::save_weights(strategy, ours, folder.path("like.npz"));
  CHECK_THROWS_WITH_AS(dist::save_weights_like(strategy, ours, path, folder.path("like.npz")),
                       doctest::Contains("it is an NPZ file"), dist::InvalidArgument);
  CHECK_THROWS_AS(dist::save_weights_like(strategy, ours, path, folder.path("no.safetensors")), dist::FileError);
  CHECK(folder.read("saved.safetensors").empty());
}
