#include <dist/data/distributed_dataset.hpp>
#include <dist/data/distributed_pipelines.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <data/workers.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/files.hpp>
#include <dist/data/idx.hpp>
#include <dist/data/interleave.hpp>
#include <dist/data/map.hpp>
#include <dist/data/shard.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/data/tfrecord.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/tfrecord.hpp>
#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::InputContext;
using dist::InvalidArgument;
using dist::Shape;
using dist::data::AutoShardPolicy;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::InputOptions;
using dist::data::Remainder;
using dist::data::ShardHint;
using dist_test::bytes;
using dist_test::Counting;
using dist_test::Meeting;
using dist_test::MeetingAgreement;
using dist_test::on_workers;
using dist_test::Steps;
using dist_test::values;

namespace {

/// The steps of each worker.
using AllSteps = std::vector<Steps>;
using Rows = std::vector<int>;

struct Group {
  std::size_t workers;
  std::size_t local_replicas;
  std::size_t global_batch;
  AutoShardPolicy policy;
  Remainder last_step;
};

std::string describe(const Group& group) {
  return dist::concat(group.workers, " x ", group.local_replicas, ", global batch ", group.global_batch, ", policy ",
                      static_cast<int>(group.policy), group.last_step == Remainder::keep ? ", keep" : ", drop");
}

/// Returns the steps of the workers of a group, each with its own dataset.
template <class Batches>
AllSteps received(const Group& group, const Batches& batches) {
  Meeting meeting{group.workers};
  return on_workers(group.workers, [&](std::size_t worker) {
    auto distributed = dist::data::distribute_dataset(
        batches, group.local_replicas, InputContext{group.workers, worker, group.workers * group.local_replicas},
        InputOptions{.auto_shard_policy = group.policy, .fetch_ahead = worker % 2, .last_step = group.last_step},
        MeetingAgreement{meeting});
    return dist_test::steps_of(distributed);
  });
}

/// Returns the number of rows of each replica in its next batches, by the definition of spec I04: the list of worker 0,
/// rotated to the left.
std::vector<std::size_t> cycle(const Group& group, std::size_t worker) {
  const std::size_t replicas = group.workers * group.local_replicas;
  const std::size_t ceil = group.global_batch - group.global_batch / replicas * replicas;
  std::vector<std::size_t> sizes(ceil, group.global_batch / replicas + 1);
  sizes.resize(replicas, group.global_batch / replicas);
  std::rotate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(worker * group.local_replicas), sizes.end());
  return sizes;
}

Rows part_of(const Rows& rows, std::size_t begin, std::size_t end) {
  begin = std::min(begin, rows.size());
  end = std::min(end, rows.size());
  return {rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// Cuts each worker's stream of rows by its cycle (spec I03). A step runs while any worker has rows (spec I24), or
/// while all have enough (spec I25).
AllSteps by_cycle(const Group& group, const std::vector<Rows>& streams) {
  AllSteps expected(group.workers);
  std::vector<std::size_t> taken(group.workers, 0);
  for (std::size_t step = 0;; ++step) {
    bool any = false;
    bool all = true;
    std::vector<std::vector<std::size_t>> shares(group.workers);
    for (std::size_t worker = 0; worker < group.workers; ++worker) {
      const std::vector<std::size_t> sizes = cycle(group, worker);
      std::size_t wanted = 0;
      for (std::size_t replica = 0; replica < group.local_replicas; ++replica) {
        shares[worker].push_back(sizes[(step * group.local_replicas + replica) % sizes.size()]);
        wanted += shares[worker].back();
      }
      any = any || taken[worker] < streams[worker].size();
      all = all && taken[worker] + wanted <= streams[worker].size();
    }
    if (!any || (group.last_step == Remainder::drop && !all)) return expected;
    for (std::size_t worker = 0; worker < group.workers; ++worker) {
      auto& replicas = expected[worker].emplace_back();
      for (const std::size_t share : shares[worker]) {
        replicas.push_back(part_of(streams[worker], taken[worker], taken[worker] + share));
        taken[worker] += share;
      }
    }
  }
}

/// Cuts a batch into `slices` slices of equal size (spec I05).
std::vector<Rows> slices_of(const Rows& rows, std::size_t slices) {
  const std::size_t slice = (rows.size() + slices - 1) / slices;
  std::vector<Rows> cut;
  for (std::size_t i = 0; i < slices; ++i) cut.push_back(part_of(rows, i * slice, (i + 1) * slice));
  return cut;
}

/// Divides each worker's list of slices into steps, with one slice per replica.
AllSteps by_slices(const Group& group, const std::vector<std::vector<Rows>>& slices) {
  std::size_t most = 0;
  std::size_t least = static_cast<std::size_t>(-1);
  for (const auto& mine : slices) {
    most = std::max(most, mine.size() / group.local_replicas);
    least = std::min(least, mine.size() / group.local_replicas);
  }
  AllSteps expected(group.workers);
  for (std::size_t worker = 0; worker < group.workers; ++worker) {
    for (std::size_t step = 0; step < (group.last_step == Remainder::keep ? most : least); ++step) {
      auto& replicas = expected[worker].emplace_back();
      for (std::size_t replica = 0; replica < group.local_replicas; ++replica) {
        const std::size_t slice = step * group.local_replicas + replica;
        replicas.push_back(slice < slices[worker].size() ? slices[worker][slice] : Rows{});
      }
    }
  }
  return expected;
}

/// Returns the slices of a worker to which all batches belong.
std::vector<Rows> slices_of_stream(const Group& group, const Rows& stream) {
  std::vector<Rows> slices;
  for (std::size_t begin = 0; begin < stream.size(); begin += group.global_batch) {
    const Rows rows = part_of(stream, begin, begin + group.global_batch);
    if (group.last_step == Remainder::drop && rows.size() < group.global_batch) break;
    for (Rows& slice : slices_of(rows, group.workers * group.local_replicas)) slices.push_back(std::move(slice));
  }
  return slices;
}

Rows numbers(std::size_t count, std::size_t first = 0, std::size_t stride = 1) {
  Rows rows;
  for (std::size_t i = first; i < count; i += stride) rows.push_back(static_cast<int>(i));
  return rows;
}

std::map<int, std::size_t> how_often(const AllSteps& all) {
  std::map<int, std::size_t> count;
  for (const Steps& steps : all)
    for (const auto& step : steps)
      for (const Rows& rows : step)
        for (const int row : rows) ++count[row];
  return count;
}

/// Returns the number of rows of all replicas at a step.
std::size_t rows_of_step(const AllSteps& all, std::size_t step) {
  std::size_t rows = 0;
  for (const Steps& steps : all)
    for (const Rows& mine : steps.at(step)) rows += mine.size();
  return rows;
}

/// A source in which file f has `sizes[f]` elements, 100 f, 100 f + 1, …
class UnevenFiles : public dist::data::DatasetRange<UnevenFiles> {
 public:
  using Element = int;

  explicit UnevenFiles(std::vector<std::size_t> sizes) {
    for (std::size_t file = 0; file < sizes.size(); ++file) {
      files_.emplace_back();
      for (std::size_t row = 0; row < sizes[file]; ++row) files_.back().push_back(static_cast<int>(100 * file + row));
    }
  }
  class Iterator {
   public:
    explicit Iterator(Rows rows) : rows_(std::move(rows)) {}
    bool next(int& element) {
      if (next_ == rows_.size()) return false;
      element = rows_[next_++];
      return true;
    }

   private:
    Rows rows_;
    std::size_t next_ = 0;
  };
  Iterator iterate(std::uint64_t) const { return Iterator{rows()}; }
  Cardinality cardinality() const { return Cardinality::known(rows().size()); }
  std::size_t num_files() const { return files_.size(); }
  UnevenFiles shard_files(std::size_t shards, std::size_t shard) const {
    UnevenFiles mine{{}};
    for (std::size_t file = shard; file < files_.size(); file += shards) mine.files_.push_back(files_[file]);
    return mine;
  }
  Rows rows() const {
    Rows all;
    for (const Rows& file : files_) all.insert(all.end(), file.begin(), file.end());
    return all;
  }

 private:
  std::vector<Rows> files_;
};

/// Batches of unreported size.
template <class D>
class OfUnknownSize : public dist::data::DatasetRange<OfUnknownSize<D>> {
 public:
  using Element = typename D::Element;
  static constexpr bool is_batched = true;

  explicit OfUnknownSize(D batches) : batches_(std::move(batches)) {}
  auto iterate(std::uint64_t epoch) const { return batches_.iterate(epoch); }
  Cardinality cardinality() const { return Cardinality::unknown(); }
  D& upstream() { return batches_; }

 private:
  D batches_;
};

/// Calls `check(group)` for 1 to 4 workers of 1 and 2 replicas, divisible and indivisible batches, and both remainders.
template <class Check>
void for_groups(AutoShardPolicy policy, Check check) {
  for (std::size_t workers = 1; workers <= 4; ++workers)
    for (const std::size_t local_replicas : {1U, 2U})
      for (const std::size_t global_batch : {1U, 3U, 8U})
        for (const Remainder last_step : {Remainder::keep, Remainder::drop}) {
          const Group group{workers, local_replicas, global_batch, policy, last_step};
          CAPTURE(describe(group));
          check(group);
        }
}

/// Returns an IDX file of bytes.
std::string idx(const std::vector<std::uint8_t>& elements) {
  std::string content{'\0', '\0', '\x08', '\x01', '\0', '\0', '\0', static_cast<char>(elements.size())};
  for (const std::uint8_t byte : elements) content += static_cast<char>(byte);
  return content;
}

}  // namespace

TEST_CASE("off: every worker cuts the whole dataset by its cycle (spec I03, I04, I12, I24, I25)") {
  for_groups(AutoShardPolicy::off, [](const Group& group) {
    for (const int elements : {0, 1, 5, 13, 24}) {
      CAPTURE(elements);
      const AllSteps all = received(group, Counting{elements} | batch(group.global_batch));
      const Rows rows = numbers(static_cast<std::size_t>(elements));
      CHECK(all == by_cycle(group, std::vector<Rows>(group.workers, rows)));
      if (group.last_step == Remainder::drop) continue;
      for (const auto& [row, times] : how_often(all)) CHECK(times == group.workers);
    }
  });
}

TEST_CASE("data: every batch is cut into slices, and workers take every W-th (spec I05, I06, I09, I24, I25)") {
  for (const AutoShardPolicy policy : {AutoShardPolicy::data, AutoShardPolicy::automatic})
    for_groups(policy, [&](const Group& group) {
      for (const std::size_t elements : {0U, 1U, 5U, 13U, 24U}) {
        CAPTURE(elements);
        const AllSteps all = received(group, Counting{static_cast<int>(elements)} | batch(group.global_batch));
        const Rows rows = numbers(elements);
        if (policy == AutoShardPolicy::automatic && group.workers == 1) {
          CHECK(all == by_cycle(group, {rows}));
          continue;
        }
        std::vector<std::vector<Rows>> slices(group.workers);
        const std::vector<Rows> cut = slices_of_stream(group, rows);
        for (std::size_t slice = 0; slice < cut.size(); ++slice) slices[slice % group.workers].push_back(cut[slice]);
        CHECK(all == by_slices(group, slices));
        const std::size_t kept =
            group.last_step == Remainder::keep ? elements : elements - elements % group.global_batch;
        CHECK(how_often(all).size() == kept);
        for (const auto& [row, times] : how_often(all)) CHECK(times == 1);
        for (std::size_t step = 0; step < elements / group.global_batch; ++step)
          CHECK(rows_of_step(all, step) == group.global_batch);
      }
    });
}

TEST_CASE("file: each worker's files are cut by its cycle, until all end (spec I03, I04, I08, I10, I24, I25)") {
  for (const AutoShardPolicy policy : {AutoShardPolicy::file, AutoShardPolicy::automatic})
    for_groups(policy, [&](const Group& group) {
      for (const std::vector<std::size_t>& sizes : {std::vector<std::size_t>{3, 3, 3, 3},
                                                    {9, 0, 2, 1, 4},
                                                    {0, 0, 0, 0},
                                                    {0, 0, 0, 17},
                                                    {1, 20, 0, 0, 5, 2, 2}}) {
        CAPTURE(sizes);
        const UnevenFiles files{sizes};
        const AllSteps all = received(group, files | batch(group.global_batch));
        std::vector<Rows> streams;
        for (std::size_t worker = 0; worker < group.workers; ++worker)
          streams.push_back(files.shard_files(group.workers, worker).rows());
        CHECK(all == by_cycle(group, streams));
        if (group.last_step == Remainder::drop) continue;
        CHECK(how_often(all).size() == files.rows().size());
        for (const auto& [row, times] : how_often(all)) CHECK(times == 1);
        // Steps are full while all workers have rows, which they take evenly over each round of W steps.
        std::size_t shortest = static_cast<std::size_t>(-1);
        for (const Rows& stream : streams) shortest = std::min(shortest, stream.size());
        for (std::size_t step = 0; step < shortest / group.global_batch * group.workers; ++step)
          CHECK(rows_of_step(all, step) == group.global_batch);
      }
    });
}

TEST_CASE("hint: each worker's share of the elements is sliced (spec I05, I06, I11, I24, I25)") {
  for_groups(AutoShardPolicy::hint, [](const Group& group) {
    for (const std::size_t elements : {4U, 5U, 13U, 24U}) {
      CAPTURE(elements);
      const AllSteps all = received(
          group, Counting{static_cast<int>(elements)} | dist::data::shard(ShardHint{}) | batch(group.global_batch));
      if (group.workers == 1) {
        CHECK(all == by_cycle(group, {numbers(elements)}));
        continue;
      }
      std::vector<std::vector<Rows>> slices;
      for (std::size_t worker = 0; worker < group.workers; ++worker)
        slices.push_back(slices_of_stream(group, numbers(elements, worker, group.workers)));
      CHECK(all == by_slices(group, slices));
      if (group.last_step == Remainder::keep) CHECK(how_often(all).size() == elements);
      for (const auto& [row, times] : how_often(all)) CHECK(times == 1);
    }
  });
}

TEST_CASE("batches of unknown size are sliced, however many each worker has (spec I02, I05, I06, I24)") {
  for (std::size_t workers = 1; workers <= 4; ++workers)
    for (const std::size_t local_replicas : {1U, 2U}) {
      const Group group{workers, local_replicas, 4, AutoShardPolicy::file, Remainder::keep};
      CAPTURE(describe(group));
      const UnevenFiles files{{9, 0, 2, 1, 4}};
      const AllSteps all = received(group, OfUnknownSize{files | batch(4)});
      std::vector<std::vector<Rows>> slices;
      for (std::size_t worker = 0; worker < workers; ++worker)
        slices.push_back(slices_of_stream(group, files.shard_files(workers, worker).rows()));
      CHECK(all == by_slices(group, slices));
      for (const auto& [row, times] : how_often(all)) CHECK(times == 1);
    }
}

TEST_CASE("workers divide TFRecord files, and IDX files that interleave opens (spec I08, I10, I24)") {
  support::TemporaryFolder folder;
  std::vector<std::string> records;
  std::vector<std::string> arrays;
  const std::vector<std::vector<std::uint8_t>> contents{{0, 1, 2, 3, 4}, {10}, {}, {30, 31, 32}};
  for (const auto& content : contents) {
    std::string file;
    for (const std::uint8_t byte : content) dist::io::append_tfrecord(file, std::string(1, static_cast<char>(byte)));
    records.push_back(folder.write(dist::concat(records.size(), ".tfrecord"), bytes(file)));
    arrays.push_back(folder.write(dist::concat(arrays.size(), ".idx"), bytes(idx(content))));
  }
  const auto from_records =
      dist::data::tfrecord(records) | dist::data::map([](const std::string& record) { return int{record[0]}; });
  const auto from_arrays =
      dist::data::files(arrays) | dist::data::flat_map([](const std::string& file) {
        dist::io::FileSource source{file};
        return dist::data::tensor_slices(dist::data::read_idx<std::uint8_t>(source, 100)) |
               dist::data::map([](const dist::TensorView<const std::uint8_t>& value) { return int{value[0]}; });
      });
  for (const AutoShardPolicy policy : {AutoShardPolicy::file, AutoShardPolicy::automatic})
    for (std::size_t workers = 2; workers <= 4; ++workers)
      for (const std::size_t local_replicas : {1U, 2U}) {
        const Group group{workers, local_replicas, 4, policy, Remainder::keep};
        CAPTURE(describe(group));
        std::vector<Rows> streams(workers);
        for (std::size_t file = 0; file < contents.size(); ++file)
          streams[file % workers].insert(streams[file % workers].end(), contents[file].begin(), contents[file].end());
        const AllSteps expected = by_cycle(group, streams);
        CHECK(received(group, from_records | batch(4)) == expected);
        CHECK(received(group, from_arrays | batch(4)) == expected);
      }
  const Group five{5, 1, 4, AutoShardPolicy::file, Remainder::keep};
  CHECK_THROWS_WITH_AS(received(five, from_records | batch(4)), doctest::Contains("4 files for 5 workers"),
                       InvalidArgument);
  const Group by_data{5, 1, 4, AutoShardPolicy::data, Remainder::keep};
  const Group automatic{5, 1, 4, AutoShardPolicy::automatic, Remainder::keep};
  CHECK(received(automatic, from_records | batch(4)) == received(by_data, from_records | batch(4)));
}

TEST_CASE("a worker without data receives 0 rows, with extents after its first rows (spec I24)") {
  const auto images = [](std::size_t count) {
    return dist::data::tensor_slices(dist_test::iota<float>({count, 2, 3}), dist_test::iota<int>({count})) | batch(2);
  };
  Meeting meeting{3};
  using Extents = std::vector<std::pair<Shape, Shape>>;
  const std::vector<Extents> extents = on_workers(3, [&](std::size_t worker) {
    auto distributed = dist::data::distribute_datasets_from_function(
        [&](const InputContext& context) { return images(2 * context.input_pipeline_id()); }, 1,
        InputContext{3, worker, 3}, {}, MeetingAgreement{meeting});
    CHECK(distributed.cardinality() == Cardinality::unknown());
    Extents seen;
    for (const auto& step : distributed) seen.emplace_back(step[0].x.shape(), step[0].y.shape());
    return seen;
  });
  CHECK(extents[0] == Extents{{Shape{0}, Shape{0}}, {Shape{0}, Shape{0}}});
  CHECK(extents[1] == Extents{{Shape{2, 2, 3}, Shape{2}}, {Shape{0, 2, 3}, Shape{0}}});
  CHECK(extents[2] == Extents{{Shape{2, 2, 3}, Shape{2}}, {Shape{2, 2, 3}, Shape{2}}});
  Meeting again{2};
  const auto by_files = on_workers(2, [&](std::size_t worker) {
    auto distributed = dist::data::distribute_dataset(UnevenFiles{{0, 3}} | batch(2), 1, InputContext{2, worker, 2},
                                                      InputOptions{}, MeetingAgreement{again});
    std::vector<Shape> seen;
    for (const auto& step : distributed) seen.push_back(step[0].shape());
    return seen;
  });
  CHECK(by_files[0] == std::vector<Shape>(3, Shape{0}));
}

TEST_CASE("functions of workers may return any number of batches (spec I17, I20, I24, I25)") {
  for (std::size_t workers = 1; workers <= 4; ++workers)
    for (const std::size_t local_replicas : {1U, 2U})
      for (const std::size_t most : {0U, 1U, 7U})
        for (const Remainder last_step : {Remainder::keep, Remainder::drop}) {
          const Group group{workers, local_replicas, 2 * workers * local_replicas, AutoShardPolicy::off, last_step};
          CAPTURE(describe(group));
          CAPTURE(most);
          Meeting meeting{workers};
          const AllSteps all = on_workers(workers, [&](std::size_t worker) {
            auto distributed = dist::data::distribute_datasets_from_function(
                [&](const InputContext& context) {
                  const std::size_t rows = most * (1 + context.input_pipeline_id() % 2);
                  return Counting{static_cast<int>(rows)} |
                         batch(context.get_per_replica_batch_size(group.global_batch));
                },
                local_replicas, InputContext{workers, worker, workers * local_replicas}, {.last_step = last_step},
                MeetingAgreement{meeting});
            return dist_test::steps_of(distributed);
          });
          // Batches of two rows; a partial last one counts as one for its replica.
          std::size_t longest = 0;
          std::size_t shortest = static_cast<std::size_t>(-1);
          for (std::size_t worker = 0; worker < workers; ++worker) {
            const std::size_t batches = (most * (1 + worker % 2) + 1) / 2;
            longest = std::max(longest, (batches + local_replicas - 1) / local_replicas);
            shortest = std::min(shortest, batches / local_replicas);
          }
          for (std::size_t worker = 0; worker < workers; ++worker) {
            const Rows rows = numbers(most * (1 + worker % 2));
            Steps expected;
            for (std::size_t step = 0; step < (last_step == Remainder::keep ? longest : shortest); ++step) {
              auto& replicas = expected.emplace_back();
              for (std::size_t replica = 0; replica < local_replicas; ++replica) {
                const std::size_t taken = step * local_replicas + replica;
                replicas.push_back(part_of(rows, 2 * taken, 2 * taken + 2));
              }
            }
            CHECK(all[worker] == expected);
          }
        }
}

TEST_CASE("the workers' rows of one shuffled order match a single process (spec I17, I20)") {
  // Worker w takes rows or batches w, w + W, ..., and the batches of all replicas together have the size of the global
  // batch: step k has the rows of batch k in a single process.
  constexpr std::size_t global_batch = 12;
  const auto shuffled = Counting{48} | dist::data::shuffle(48, 7);
  std::vector<Rows> whole;
  for (const auto& rows : dist_test::collect(shuffled | batch(global_batch))) {
    whole.push_back(values(rows));
    std::sort(whole.back().begin(), whole.back().end());
  }
  const auto by_rows = [&](const InputContext& context) {
    return shuffled | dist::data::shard(context.num_input_pipelines(), context.input_pipeline_id()) |
           batch(context.get_per_replica_batch_size(global_batch));
  };
  const auto by_batches = [&](const InputContext& context) {
    return shuffled | batch(context.get_per_replica_batch_size(global_batch)) |
           dist::data::shard(context.num_input_pipelines(), context.input_pipeline_id());
  };
  const auto check = [&](const auto& pipeline, std::size_t workers, std::size_t local_replicas) {
    CAPTURE(workers);
    CAPTURE(local_replicas);
    Meeting meeting{workers};
    const AllSteps all = on_workers(workers, [&](std::size_t worker) {
      auto distributed = dist::data::distribute_datasets_from_function(
          pipeline, local_replicas, InputContext{workers, worker, workers * local_replicas}, {},
          MeetingAgreement{meeting});
      return dist_test::steps_of(distributed);
    });
    for (std::size_t step = 0; step < whole.size(); ++step) {
      Rows together;
      for (const Steps& steps : all)
        for (const Rows& rows : steps.at(step)) together.insert(together.end(), rows.begin(), rows.end());
      std::sort(together.begin(), together.end());
      CHECK(together == whole[step]);
    }
  };
  for (const auto& [workers, local_replicas] : {std::pair{1U, 1U}, {2U, 1U}, {4U, 1U}, {2U, 2U}, {3U, 2U}}) {
    check(by_rows, workers, local_replicas);
    check(by_batches, workers, local_replicas);
  }
}

TEST_CASE("workers agree on infinite data once, and a loop over them can end anywhere (spec I21, I23)") {
  Meeting meeting{2};
  on_workers(2, [&](std::size_t worker) {
    auto distributed = dist::data::distribute_dataset(
        Counting{7} | dist::data::repeat() | batch(4), 1, InputContext{2, worker, 2},
        InputOptions{.auto_shard_policy = AutoShardPolicy::off}, MeetingAgreement{meeting});
    CHECK(distributed.cardinality() == Cardinality::infinite());
    for (int epoch = 0; epoch < 2; ++epoch) {
      int steps = 0;
      for (const auto& step : distributed) {
        CHECK(step[0].shape() == Shape{2});
        if (++steps == 100) break;
      }
      CHECK(steps == 100);
    }
    return 0;
  });
  CHECK(meeting.posts() == 2 * 2);
}

TEST_CASE("loops can end early on all workers, and later epochs run (spec I21, I31)") {
  for (std::size_t workers = 1; workers <= 4; ++workers) {
    Meeting meeting{workers};
    const auto taken = on_workers(workers, [&](std::size_t worker) {
      auto distributed = dist::data::distribute_dataset(UnevenFiles{{9, 0, 2, 1, 4}} | batch(2), 1,
                                                        InputContext{workers, worker, workers}, InputOptions{},
                                                        MeetingAgreement{meeting});
      std::vector<std::size_t> steps;
      for (const std::size_t most : {0U, 1U, 3U, 100U, 2U, 100U}) {
        auto pass = distributed.iterate(steps.size());
        std::size_t count = 0;
        while (count < most && pass.get_next_as_optional()) ++count;
        steps.push_back(count);
      }
      return steps;
    });
    const Group group{workers, 1, 2, AutoShardPolicy::file, Remainder::keep};
    std::vector<Rows> streams;
    for (std::size_t worker = 0; worker < workers; ++worker)
      streams.push_back(UnevenFiles{{9, 0, 2, 1, 4}}.shard_files(workers, worker).rows());
    const std::size_t whole = by_cycle(group, streams)[0].size();
    for (const auto& steps : taken) CHECK(steps == std::vector<std::size_t>{0, 1, 3, whole, 2, whole});
  }
}

TEST_CASE("the number of steps is unknown if workers have separate data (spec I27)") {
  Meeting meeting{1};
  const MeetingAgreement agreement{meeting};
  const auto cardinality = [&](const auto& dataset, AutoShardPolicy policy, std::size_t workers) {
    return dist::data::distribute_dataset(dataset | batch(2), 1, InputContext{workers, 0, workers},
                                          InputOptions{.auto_shard_policy = policy}, agreement)
        .cardinality();
  };
  const UnevenFiles files{{4, 4}};
  CHECK(cardinality(files, AutoShardPolicy::file, 1) == Cardinality::known(4));
  CHECK(cardinality(files, AutoShardPolicy::file, 2) == Cardinality::unknown());
  CHECK(cardinality(files, AutoShardPolicy::off, 2) == Cardinality::known(8));
  CHECK(cardinality(files, AutoShardPolicy::data, 2) == Cardinality::known(4));
  CHECK(cardinality(files | dist::data::repeat(), AutoShardPolicy::file, 2) == Cardinality::infinite());
  const auto of_function = [&](const auto& dataset, std::size_t workers, Remainder last_step) {
    return dist::data::distribute_datasets_from_function([&](const InputContext&) { return dataset | batch(2); }, 1,
                                                         InputContext{workers, 0, workers}, {.last_step = last_step},
                                                         agreement)
        .cardinality();
  };
  CHECK(of_function(files, 1, Remainder::keep) == Cardinality::known(4));
  CHECK(of_function(files, 2, Remainder::keep) == Cardinality::unknown());
  CHECK(of_function(files | dist::data::repeat(), 2, Remainder::keep) == Cardinality::infinite());
  CHECK(of_function(files | dist::data::repeat(), 2, Remainder::drop) == Cardinality::unknown());
}

TEST_CASE("a worker whose data throw ends its pass alone, without harm to waiting workers (spec I24)") {
  Meeting meeting{2, std::chrono::milliseconds{200}};
  const auto outcome = on_workers(2, [&](std::size_t worker) -> std::string {
    auto distributed = dist::data::distribute_dataset(
        Counting{worker == 0 ? 12 : 100, worker == 0 ? Counting::never : 5} | batch(2), 1, InputContext{2, worker, 2},
        InputOptions{.auto_shard_policy = AutoShardPolicy::off}, MeetingAgreement{meeting});
    try {
      for (const auto& step : distributed) CHECK(step.size() == 1);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  });
  CHECK(outcome[1] == "the source broke");
  CHECK(outcome[0].find("did not agree") != std::string::npos);
}
