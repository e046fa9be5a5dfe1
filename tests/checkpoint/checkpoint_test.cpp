#include <dist/checkpoint/checkpoint.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/generator.hpp>

#include <doctest/doctest.h>
#include <support/file_size_limit.hpp>
#include <support/saved.hpp>
#include <support/small_disk.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

namespace nn = dist::nn;
using dist::Checkpoint;
using support::what_throws;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using Net = nn::Sequential<nn::Input<4>, nn::Dense<3, nn::Relu>, nn::Dense<2>>;
using Names = std::vector<std::string>;

namespace {

/// True if all elements of the variable equal `number`.
template <class S, class Variable>
bool all_are(S& strategy, const Variable& variable, double number) {
  const auto whole = variable.whole(strategy.scope());
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (static_cast<double>(whole[i]) != number) return false;
  return true;
}

bool says(const std::string& said, std::string_view part) {
  CAPTURE(said);
  const bool found = said.find(part) != std::string::npos;
  CHECK_MESSAGE(found, std::string{part});
  return found;
}

}  // namespace

TEST_CASE("parts are saved by their names, including numbers of the program") {
  const support::TemporaryFolder folder;
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  std::int64_t epoch = 7;
  Checkpoint checkpoint{strategy};
  checkpoint.add("network", net).add("epoch", epoch);
  CHECK(&checkpoint.strategy() == &strategy);
  checkpoint.save(folder.path("new/folder/first"));
  const dist::detail::CheckpointReader reader{folder.path("new/folder/first")};
  CHECK(reader.keys() ==
        Names{"epoch", "network/dense/bias", "network/dense/kernel", "network/dense_1/bias", "network/dense_1/kernel"});
  CHECK(reader.read<std::int64_t>("epoch")[0] == 7);
  const support::Saved before{strategy, net};
  nn::Network<Net> other{strategy, 2};
  epoch = 0;
  std::int64_t other_epoch = 0;
  Checkpoint restoring{strategy};
  restoring.add("network", other).add("epoch", other_epoch);
  restoring.restore(folder.path("new/folder/first"));
  CHECK(support::Saved{strategy, other} == before);
  CHECK(other_epoch == 7);
  CHECK(epoch == 0);
}

TEST_CASE("elements are converted if their type has changed and every number fits") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  nn::Network<Net, nn::Reference, float> net{strategy};
  std::int32_t epoch = 300;
  Checkpoint checkpoint{strategy};
  checkpoint.add("network", net).add("epoch", epoch).save(folder.path("a"));

  nn::Network<Net, nn::Reference, double> wide{strategy, 2};
  std::int64_t long_epoch = 0;
  Checkpoint restoring{strategy};
  restoring.add("network", wide).add("epoch", long_epoch).restore(folder.path("a"));
  CHECK(long_epoch == 300);
  const auto from = support::Saved{strategy, net}.get<float>("dense/kernel");
  const auto to = support::Saved{strategy, wide}.get<double>("dense/kernel");
  for (std::size_t i = 0; i < from.size(); ++i) CHECK(to[i] == static_cast<double>(from[i]));

  nn::Network<Net, nn::Reference, double> untouched{strategy, 3};
  const support::Saved before{strategy, untouched};
  std::int8_t short_epoch = 5;
  Checkpoint refused{strategy};
  refused.add("network", untouched).add("epoch", short_epoch);
  says(what_throws<dist::FileError>([&] { refused.restore(folder.path("a")); }), "300");
  CHECK(support::Saved{strategy, untouched} == before);
  CHECK(short_epoch == 5);
}

TEST_CASE("parts created later are restored when they are added (spec N10)") {
  const support::TemporaryFolder folder;
  Mirrored three{3};
  nn::Network<Net> net{three};
  nn::Optimizer optimizer{three, net, nn::Adam{.learning_rate = 0.25f}};
  int epoch = 4;
  {
    Checkpoint checkpoint{three};
    checkpoint.add("network", net).add("optimizer", optimizer).add("epoch", epoch).save(folder.path("a"));
  }
  dist::Default strategy;
  Checkpoint checkpoint{strategy};
  CHECK(checkpoint.unrestored().empty());
  int restored_epoch = 0;
  checkpoint.add("epoch", restored_epoch).restore(folder.path("a"));
  CHECK(restored_epoch == 4);
  CHECK(checkpoint.unrestored().size() == 4 + 3 + 2 * 4);
  nn::Network<Net> later{strategy, 2};
  checkpoint.add("network", later);
  CHECK(support::Saved{strategy, later} == support::Saved{three, net});
  CHECK(checkpoint.unrestored() == Names{"optimizer/iterations", "optimizer/kind", "optimizer/learning_rate",
                                         "optimizer/momentum/dense/bias", "optimizer/momentum/dense/kernel",
                                         "optimizer/momentum/dense_1/bias", "optimizer/momentum/dense_1/kernel",
                                         "optimizer/velocity/dense/bias", "optimizer/velocity/dense/kernel",
                                         "optimizer/velocity/dense_1/bias", "optimizer/velocity/dense_1/kernel"});
  int unknown = 9;  // not in the checkpoint
  int net_epoch = 9;
  checkpoint.add("net", net_epoch).add("opt", unknown);
  CHECK(net_epoch == 9);
  nn::Optimizer last{strategy, later, nn::Adam{}};
  checkpoint.add("optimizer", last);
  CHECK(last.function().learning_rate == 0.25f);
  CHECK(checkpoint.unrestored().empty());
}

TEST_CASE("a checkpoint that does not fit changes nothing, and the error has the key") {
  const support::TemporaryFolder folder;
  Mirrored strategy{2};
  auto first = strategy.variable<float>({4}, 1.0f);
  auto second = strategy.variable<float>({5, 2}, 2.0f);
  Checkpoint saving{strategy};
  saving.add("first", first).add("second", second).save(folder.path("a"));
  const auto refused = [&]<class Error>(auto& last) {
    auto fits = strategy.variable<float>({4}, 5.0f);
    Checkpoint checkpoint{strategy};
    checkpoint.add("first", fits).add("second", last);
    const std::string said = what_throws<Error>([&] { checkpoint.restore(folder.path("a")); });
    CHECK(all_are(strategy, fits, 5));
    return said;
  };
  auto other_shape = strategy.variable<float>({2, 5}, 6.0f);
  CHECK(refused.operator()<dist::ShapeMismatch>(other_shape) ==
        "'second' does not have the shape that is saved in the checkpoint " + folder.path("a") +
            " (its shape is [2, 5], but [5, 2] was saved). Restore it into an object of the saved shape.");
  CHECK(all_are(strategy, other_shape, 6));
  int number = 7;
  says(refused.operator()<dist::ShapeMismatch>(number), "'second' does not have the shape");
  CHECK(number == 7);
  dist::Generator generator{strategy, 1};
  const auto state = generator.whole(strategy.scope());
  says(refused.operator()<dist::ShapeMismatch>(generator), "The states given do not fit generator");
  CHECK(std::equal(state.data(), state.data() + state.size(), generator.whole(strategy.scope()).data()));
  nn::Network<Net> net{strategy};
  const support::Saved before{strategy, net};
  says(refused.operator()<dist::FileError>(net),
       "' is a checkpoint without 'second/dense/kernel' (it holds 'first', "
       "'second'). Restore it into the parts that were saved.");
  CHECK(support::Saved{strategy, net} == before);
}

TEST_CASE("a checkpoint that is damaged anywhere changes nothing") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  auto first = strategy.variable<float>({100}, 1.0f);
  auto last = strategy.variable<float>({100}, 2.0f);
  Checkpoint checkpoint{strategy};
  checkpoint.add("first", first).add("last", last).save(folder.path("a"));
  first.assign(strategy.scope(), 3.0f);
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator{folder.path("a")})
    if (entry.path().extension() == ".safetensors") file = "a/" + entry.path().filename().string();
  std::string content = folder.read(file);
  content.back() = '\x7f';  // of the last tensor
  folder.write(file, content);
  CHECK(what_throws<dist::FileError>([&] { checkpoint.restore(folder.path("a")); }) ==
        "File '" + folder.path(file) +
            "' differs from the file that was saved (the checksum of 'last' differs). Restore another checkpoint: this "
            "one is damaged, or its copy is incomplete.");
  CHECK(all_are(strategy, first, 3));
  says(what_throws<dist::FileError>([&] { checkpoint.restore(folder.path("b")); }), "is not a checkpoint");
}

TEST_CASE("names of parts are unique and do not contain '/'") {
  dist::Default strategy;
  int number = 0;
  Checkpoint checkpoint{strategy};
  checkpoint.add("a", number);
  const auto refused = [&](const char* name) {
    return what_throws<dist::InvalidArgument>([&] { checkpoint.add(name, number); });
  };
  CHECK(refused("a") == "Two parts of a checkpoint are named 'a' (one would replace the other). Rename one of them.");
  CHECK(
      refused("") ==
      "The name of a part of a checkpoint is not valid (it is empty: ''). Use a name without '/', such as \"model\".");
  CHECK(refused("a/b") ==
        "The name of a part of a checkpoint is not valid (a '/' separates the names of nested parts: 'a/b'). Use a "
        "name without '/', such as \"model\".");
}

TEST_CASE("a background save stores the values at start_save (spec N16)") {
  const support::TemporaryFolder folder;
  Mirrored strategy{2};
  auto weights = strategy.variable<float>({2'000'000}, 1.0f);
  std::int64_t epoch = 1;
  Checkpoint checkpoint{strategy};
  checkpoint.add("weights", weights).add("epoch", epoch);
  bool was_told = false;
  const auto saving = checkpoint.start_save(folder.path("a/"), [&] { was_told = true; });
  weights.assign(strategy.scope(), 2.0f);
  epoch = 2;
  CHECK(saving.path() == folder.path("a"));
  saving.wait();
  saving.wait();
  CHECK(saving.is_done());
  CHECK(was_told);
  checkpoint.restore(folder.path("a"));
  CHECK(all_are(strategy, weights, 1));
  CHECK(epoch == 1);
}

TEST_CASE("a second save waits for the first, and destroying the handle does not cancel a save") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  auto weights = strategy.variable<float>({1'000'000}, 1.0f);
  {
    Checkpoint checkpoint{strategy};
    checkpoint.add("weights", weights);
    const auto first = checkpoint.start_save(folder.path("a"));
    weights.assign(strategy.scope(), 2.0f);
    static_cast<void>(checkpoint.start_save(folder.path("b")));
    CHECK(first.is_done());
    CHECK(dist::detail::is_checkpoint(folder.path("a")));
  }
  CHECK(dist::latest_checkpoint(folder.path()) == folder.path("b"));
  Checkpoint checkpoint{strategy};
  checkpoint.add("weights", weights).restore(folder.path("a"));
  CHECK(all_are(strategy, weights, 1));
  checkpoint.restore(folder.path("b"));
  CHECK(all_are(strategy, weights, 2));
}

TEST_CASE("a failed save keeps an older checkpoint, removes its files, and is reported once") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  auto weights = strategy.variable<float>({100'000}, 1.0f);
  Checkpoint checkpoint{strategy};
  checkpoint.add("weights", weights).save(folder.path("a"));
  const Names files = dist::detail::names_in(folder.path("a"));
  CHECK(files.size() == 2);
  weights.assign(strategy.scope(), 2.0f);
  std::optional<Checkpoint<dist::Default>::Saving> saving;
  {
    const support::FileSizeLimit limit{40'000};
    says(
        what_throws<dist::FileError>([&] { checkpoint.save(folder.path("a")); }),
        "(File too large, after 40000 bytes; no part of it remains). Raise the limit on the size of files (ulimit -f)");
    CHECK(dist::detail::names_in(folder.path("a")) == files);
    says(what_throws<dist::FileError>([&] { checkpoint.save(folder.path("new")); }), "File '" + folder.path("new/"));
    CHECK(!std::filesystem::exists(folder.path("new")));
    saving = checkpoint.start_save(folder.path("a"));
    says(what_throws<dist::FileError>([&] { static_cast<void>(checkpoint.start_save(folder.path("b"))); }),
         "File too large");
  }
  CHECK(what_throws<dist::FileError>([&] { saving->wait(); }) != "nothing was thrown");  // a handle throws again
  checkpoint.save(folder.path("b"));
  checkpoint.restore(folder.path("a"));
  CHECK(all_are(strategy, weights, 1));
  folder.write("file", "");
  says(what_throws<dist::FileError>([&] { checkpoint.save(folder.path("file/a")); }),
       "File '" + folder.path("file/a") + "' cannot be created as a folder (Not a directory)");
  says(what_throws<dist::FileError>([&] { checkpoint.save(folder.path("file")); }), "File '" + folder.path("file"));
  says(what_throws<dist::FileError>([&] { checkpoint.save("/proc/nothing/a"); }), "File '/proc/nothing");
  CHECK(what_throws<dist::FileError>([&] { checkpoint.save(""); }) != "nothing was thrown");
}

TEST_CASE("a full or read-only disk keeps the old checkpoint") {
  const support::TemporaryFolder folder;
  support::check_on_small_disk(folder.path(), "1m", [&](const auto& make_read_only) {
    dist::Default strategy;
    auto weights = strategy.variable<float>({150'000}, 1.0f);
    Checkpoint checkpoint{strategy};
    checkpoint.add("weights", weights).save(folder.path("a"));
    weights.assign(strategy.scope(), 2.0f);
    const std::string full = what_throws<dist::FileError>([&] { checkpoint.save(folder.path("a")); });
    if (full.find("No space left on device") == std::string::npos) return 1;
    make_read_only();
    const std::string read_only = what_throws<dist::FileError>([&] { checkpoint.save(folder.path("a")); });
    if (read_only.find("Read-only file system") == std::string::npos) return 2;
    checkpoint.restore(folder.path("a"));
    return all_are(strategy, weights, 1) ? 0 : 3;
  });
}

TEST_CASE("the newest checkpoint is the last one saved, independent of names") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  int number = 0;
  Checkpoint checkpoint{strategy};
  checkpoint.add("number", number);
  for (const char* name : {"z", "b/", "m//", "b"}) {
    ++number;
    checkpoint.save(folder.path(name));
    const std::string path{name, 1};
    CHECK(dist::latest_checkpoint(folder.path()) == folder.path(path));
  }
  CHECK(dist::detail::names_in(folder.path("b")).size() == 2);  // the files of the first save are removed
  // A path without a folder is in the current folder.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  checkpoint.save("relative");
  CHECK(dist::latest_checkpoint(".") == "./relative");
  std::filesystem::current_path(before);
}
