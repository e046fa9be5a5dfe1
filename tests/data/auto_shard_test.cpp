#include <dist/data/auto_shard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/cache.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/files.hpp>
#include <dist/data/interleave.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/zip.hpp>

using dist::InputContext;
using dist::InvalidArgument;
using dist::data::auto_shard;
using dist::data::AutoShardPolicy;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::DistributedDataset;
using dist::data::InputOptions;
using dist::data::PrefetchDataset;
using dist::data::shard_hint;
using dist::data::shard_source;
using dist::data::ShardableByFile;
using dist::data::ShardDataset;
using dist::data::ShuffleDataset;
using dist_test::collect;
using dist_test::Counting;
using dist_test::values;

namespace {

/// A source in which file f has the elements 100 f, 100 f + 1 and 100 f + 2.
class Files : public dist::data::DatasetRange<Files> {
 public:
  using Element = int;

  explicit Files(std::vector<int> files) : files_(std::move(files)) {}

  class Iterator {
   public:
    explicit Iterator(const Files& dataset) : dataset_(&dataset) {}
    bool next(int& element) {
      if (next_ == 3 * dataset_->files_.size()) return false;
      element = 100 * dataset_->files_[next_ / 3] + static_cast<int>(next_ % 3);
      ++next_;
      return true;
    }

   private:
    const Files* dataset_;
    std::size_t next_ = 0;
  };

  Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  Cardinality cardinality() const { return Cardinality::known(3 * files_.size()); }
  std::size_t num_files() const { return files_.size(); }
  Files shard_files(std::size_t shards, std::size_t index) const {
    std::vector<int> mine;
    for (std::size_t file = index; file < files_.size(); file += shards) mine.push_back(files_[file]);
    return Files{mine};
  }

 private:
  std::vector<int> files_;
};
/// Sources that each lack one required member.
struct UncountedFiles : Counting {
  UncountedFiles shard_files(std::size_t, std::size_t) const;
};
struct OtherFiles : Counting {
  std::size_t num_files() const;
  Counting shard_files(std::size_t, std::size_t) const;
};
static_assert(ShardableByFile<Files>);
static_assert(!ShardableByFile<Counting> && !ShardableByFile<UncountedFiles> && !ShardableByFile<OtherFiles>);

const Files five{{0, 1, 2, 3, 4}};

}  // namespace

TEST_CASE("off: every worker reads everything (spec I12)") {
  for (const std::size_t worker : {0U, 1U}) {
    CHECK(collect(auto_shard(Counting{4}, AutoShardPolicy::off, 2, worker)) == collect(Counting{4}));
    CHECK(collect(auto_shard(five, AutoShardPolicy::off, 2, worker)) == collect(five));
  }
}

TEST_CASE("file: worker i reads files i, i + W, ... through all steps (spec I08)") {
  CHECK(collect(auto_shard(five, AutoShardPolicy::file, 2, 0)) ==
        std::vector<int>{0, 1, 2, 200, 201, 202, 400, 401, 402});
  CHECK(collect(auto_shard(five, AutoShardPolicy::file, 2, 1)) == std::vector<int>{100, 101, 102, 300, 301, 302});
  const auto pipeline = five | dist::data::filter([](int i) { return i % 100 == 0; }) |
                        dist::data::map([](int i) { return -i; }) | dist::data::repeat(2) | dist::data::prefetch(1);
  CHECK(collect(auto_shard(pipeline, AutoShardPolicy::file, 3, 2)) == std::vector<int>{-200, -200});
  // The caller's dataset is unchanged.
  CHECK(collect(five).size() == 15);
}

TEST_CASE("file: the files that interleave opens are sharded by name (spec I08)") {
  const auto named = dist::data::files({"5", "6", "7"}) |
                     dist::data::flat_map([](const std::string& name) { return Counting{name[0] - '0'}; });
  CHECK(collect(auto_shard(named, AutoShardPolicy::automatic, 2, 1)) == collect(Counting{6}));
  CHECK(collect(auto_shard(named, AutoShardPolicy::file, 3, 2)) == collect(Counting{7}));
}

TEST_CASE("data: takes every W-th element, before a trailing shuffle and prefetches (spec I09)") {
  CHECK(collect(auto_shard(Counting{5}, AutoShardPolicy::data, 2, 0)) == std::vector<int>{0, 2, 4});
  CHECK(collect(auto_shard(Counting{5}, AutoShardPolicy::data, 2, 1)) == std::vector<int>{1, 3});
  auto ahead = auto_shard(Counting{5} | dist::data::shuffle(5) | dist::data::prefetch(1) | dist::data::prefetch(2),
                          AutoShardPolicy::data, 2, 1);
  static_assert(
      std::is_same_v<decltype(ahead), PrefetchDataset<PrefetchDataset<ShuffleDataset<ShardDataset<Counting>>>>>);
  std::vector<int> elements = collect(ahead);
  std::sort(elements.begin(), elements.end());
  CHECK(elements == std::vector<int>{1, 3});
  // After other steps, the shard stays after the shuffle, which is the same on all workers.
  std::vector<int> all;
  for (std::size_t worker = 0; worker < 3; ++worker)
    for (const int element :
         collect(auto_shard(Counting{10} | dist::data::shuffle(4) | dist::data::map([](int i) { return i; }),
                            AutoShardPolicy::data, 3, worker)))
      all.push_back(element);
  std::sort(all.begin(), all.end());
  CHECK(all == collect(Counting{10}));
}

TEST_CASE("automatic: shards by file if the source reads files, otherwise by data (spec I10, I13)") {
  CHECK(collect(auto_shard(five, AutoShardPolicy::automatic, 2, 1)) ==
        collect(auto_shard(five, AutoShardPolicy::file, 2, 1)));
  CHECK(collect(auto_shard(Counting{5}, AutoShardPolicy::automatic, 2, 1)) == std::vector<int>{1, 3});
}

TEST_CASE("hint: shards at shard(shard_hint) only (spec I11)") {
  const auto hinted = Counting{5} | dist::data::shard(shard_hint) | dist::data::map([](int i) { return 10 * i; });
  CHECK(collect(auto_shard(hinted, AutoShardPolicy::hint, 2, 1)) == std::vector<int>{10, 30});
  CHECK(collect(auto_shard(hinted, AutoShardPolicy::off, 2, 1)).size() == 5);
  CHECK(collect(auto_shard(Counting{5}, AutoShardPolicy::hint, 2, 1)) == collect(Counting{5}));
  CHECK(collect(auto_shard(Counting{5} | dist::data::shard(5, 4), AutoShardPolicy::hint, 2, 1)) == std::vector<int>{4});
  CHECK_THROWS_WITH_AS(collect(auto_shard(hinted, AutoShardPolicy::hint, 6, 0)),
                       doctest::Contains("5 elements for 6 workers"), InvalidArgument);
}

TEST_CASE("hint: shards all datasets of nested joins (spec I11)") {
  const auto hinted = Counting{6} | dist::data::shard(shard_hint);
  std::vector<int> pairs;
  for (const auto& [first, second] : collect(auto_shard(
           dist::data::zip(hinted, Counting{9} | dist::data::shard(shard_hint)), AutoShardPolicy::hint, 2, 1)))
    pairs.insert(pairs.end(), {first, second});
  CHECK(pairs == std::vector<int>{1, 1, 3, 3, 5, 5});
  const auto joined = hinted | dist::data::concatenate(hinted | dist::data::concatenate(Counting{2}));
  CHECK(collect(auto_shard(joined, AutoShardPolicy::hint, 3, 2)) == std::vector<int>{2, 5, 2, 5, 0, 1});
}

TEST_CASE("auto_shard keeps a shared cache unless it shards the cached dataset (spec I11)") {
  int made = 0;
  const auto counted = [&](auto source) {
    return std::move(source) | dist::data::map([&](int i) {
             ++made;
             return i;
           }) |
           dist::data::cache();
  };
  const auto plain = counted(Counting{4});
  CHECK(collect(plain).size() == 4);
  CHECK(collect(auto_shard(plain | dist::data::shard(shard_hint), AutoShardPolicy::hint, 2, 1)) == std::vector{1, 3});
  CHECK(collect(auto_shard(plain, AutoShardPolicy::hint, 2, 1)).size() == 4);
  CHECK(made == 4);
  const auto hinted = counted(Counting{4} | dist::data::shard(shard_hint));
  CHECK(collect(hinted).size() == 4);
  CHECK(collect(auto_shard(hinted, AutoShardPolicy::hint, 2, 1)) == std::vector{1, 3});
  CHECK(collect(hinted).size() == 4);
}

TEST_CASE("one worker reads everything under every policy (spec I14)") {
  for (const auto policy : {AutoShardPolicy::off, AutoShardPolicy::automatic, AutoShardPolicy::file,
                            AutoShardPolicy::data, AutoShardPolicy::hint}) {
    CHECK(collect(auto_shard(Counting{5}, policy, 1, 0)) == collect(Counting{5}));
    CHECK(collect(auto_shard(Files{{}}, policy, 1, 0)).empty());
  }
}

TEST_CASE("shard_source returns the policy that the caller must apply (spec I06, I10)") {
  Counting numbers{5};
  Files files = five;
  CHECK(shard_source(numbers, AutoShardPolicy::automatic, 2, 0) == AutoShardPolicy::data);
  CHECK(shard_source(numbers, AutoShardPolicy::automatic, 1, 0) == AutoShardPolicy::off);
  CHECK(shard_source(numbers, AutoShardPolicy::file, 1, 0) == AutoShardPolicy::off);
  CHECK(shard_source(numbers, AutoShardPolicy::data, 1, 0) == AutoShardPolicy::data);
  CHECK(shard_source(numbers, AutoShardPolicy::hint, 1, 0) == AutoShardPolicy::hint);
  CHECK(shard_source(numbers, AutoShardPolicy::off, 2, 0) == AutoShardPolicy::off);
  CHECK(shard_source(files, AutoShardPolicy::automatic, 2, 0) == AutoShardPolicy::file);
  CHECK(files.num_files() == 3);
}

TEST_CASE("a distributed dataset shards files, and cuts batches by the cycle of sizes (spec I06, I08)") {
  // Worker 1 reads files 1 and 3 of 3 rows each; its replica's shares are 1 and 2 of 3.
  DistributedDataset distributed{five | batch(3), 1, InputContext{2, 1, 2}, InputOptions{}};
  CHECK(distributed.cardinality() == Cardinality::known(4));
  std::vector<std::vector<int>> steps;
  for (const auto& step : distributed) steps.push_back(values(step[0]));
  CHECK(steps == std::vector<std::vector<int>>{{100}, {101, 102}, {300}, {301, 302}});
}

TEST_CASE("auto_shard rejects too few files, sources without files and invalid workers (spec I07, I08, I13)") {
  CHECK_THROWS_WITH_AS(auto_shard(five, AutoShardPolicy::file, 6, 0), doctest::Contains("5 files for 6 workers"),
                       InvalidArgument);
  CHECK(collect(auto_shard(five, AutoShardPolicy::automatic, 6, 1)) ==
        collect(auto_shard(five, AutoShardPolicy::data, 6, 1)));
  for (const auto policy : {AutoShardPolicy::automatic, AutoShardPolicy::data})
    CHECK_THROWS_WITH_AS(collect(auto_shard(Counting{5}, policy, 10, 0)),
                         doctest::Contains("has 5 elements for 10 workers"), InvalidArgument);
  CHECK_THROWS_WITH_AS(auto_shard(Counting{5} | dist::data::shuffle(2), AutoShardPolicy::file, 2, 0),
                       doctest::Contains("found no files in the source dist_test::Counting"), InvalidArgument);
  CHECK_THROWS_WITH_AS(auto_shard(five, AutoShardPolicy::off, 2, 2), doctest::Contains("shard 2 of 2"),
                       InvalidArgument);
  CHECK_THROWS_AS(auto_shard(five, AutoShardPolicy::off, 0, 0), InvalidArgument);
  CHECK_THROWS_WITH_AS(auto_shard(five, static_cast<AutoShardPolicy>(7), 2, 0), doctest::Contains("its number is 7"),
                       InvalidArgument);
}
