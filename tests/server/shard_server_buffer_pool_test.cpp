#include <dist/server/shard_server.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using dist::server::BufferPool;

TEST_CASE("returned memory is reused if it fits") {
  BufferPool pool;
  BufferPool::Buffer buffer = pool.take(1000);
  CHECK(buffer.size() >= 1000);
  const std::byte* const where = buffer.data();
  pool.give_back(std::move(buffer));
  BufferPool::Buffer larger = pool.take(2000), much_smaller = pool.take(10);
  CHECK(larger.data() != where);
  CHECK(much_smaller.data() != where);
  BufferPool::Buffer again = pool.take(900);
  CHECK(again.data() == where);
  CHECK(pool.take(900).data() != where);
  CHECK(pool.take(0).size() == 0);
}

TEST_CASE("the smallest fitting buffer is taken, and the number of kept ones is limited") {
  BufferPool pool;
  std::vector<BufferPool::Buffer> buffers;
  for (std::size_t i = 0; i < BufferPool::most_kept + 2; ++i) buffers.push_back(pool.take(100 + i));
  std::vector<const std::byte*> where;
  for (BufferPool::Buffer& buffer : buffers) where.push_back(buffer.data());
  while (!buffers.empty()) {
    pool.give_back(std::move(buffers.back()));
    buffers.pop_back();
  }
  const BufferPool::Buffer first = pool.take(100), second = pool.take(110);
  CHECK(first.size() == 102);  // two were freed
  CHECK(first.data() == where[2]);
  CHECK(second.size() == 110);
}
