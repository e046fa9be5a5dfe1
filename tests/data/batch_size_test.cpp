#include <dist/data/batch_size.hpp>

#include <doctest/doctest.h>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/cache.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/shard.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>

using dist::Tensor;
using dist::data::batch;
using dist::data::known_batch_size;
using dist::data::partial_batches_of;
using dist::data::PartialBatches;
using dist::data::Remainder;
using dist_test::Counting;

TEST_CASE("steps after batch keep the batch size (spec I02)") {
  const auto batches = Counting{10} | batch(4);
  CHECK(known_batch_size(batches) == 4);
  CHECK(known_batch_size(batches | dist::data::prefetch(1)) == 4);
  CHECK(known_batch_size(batches | dist::data::repeat(2) | dist::data::shuffle(2)) == 4);
  CHECK(known_batch_size(batches | dist::data::skip(1) | dist::data::take(2) | dist::data::cache()) == 4);
  CHECK(known_batch_size(batches | dist::data::map([](const Tensor<int>& rows) { return rows; })) == 4);
  CHECK(known_batch_size(batches | dist::data::shard(2, 0)) == 4);
  CHECK(known_batch_size(Counting{10}) == 0);
  CHECK(known_batch_size(Counting{10} | dist::data::prefetch(1)) == 0);
}

TEST_CASE("partial_batches_of reports which batches may be partial") {
  const auto last = Counting{10} | batch(4);
  CHECK(partial_batches_of(last) == PartialBatches::last);
  CHECK(partial_batches_of(Counting{8} | batch(4)) == PartialBatches::none);
  CHECK(partial_batches_of(Counting{10} | batch(4, Remainder::drop)) == PartialBatches::none);
  CHECK(partial_batches_of(Counting{8, dist::data::Cardinality::unknown()} | batch(4)) == PartialBatches::last);
  CHECK(partial_batches_of(Counting{10} | dist::data::repeat() | batch(4)) == PartialBatches::none);
  CHECK(partial_batches_of(last | dist::data::prefetch(1) | dist::data::take(2) | dist::data::skip(1)) ==
        PartialBatches::last);
  CHECK(partial_batches_of(last | dist::data::repeat(2)) == PartialBatches::any);
  CHECK(partial_batches_of(last | dist::data::shuffle(2)) == PartialBatches::any);
  CHECK(partial_batches_of(Counting{8} | batch(4) | dist::data::shuffle(2)) == PartialBatches::none);
  CHECK(partial_batches_of(Counting{8}) == PartialBatches::any);
}
