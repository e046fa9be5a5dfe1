#include <dist/strategy/update.hpp>

#include <cstddef>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

TEST_CASE_TEMPLATE("who has the context outside replica functions updates each copy, also where calls are merged", S,
                   dist::Mirrored<dist::ThreadAllReduce>, dist::CentralStorage<dist::Cpu>) {
  S strategy{2};
  auto variable = strategy.template variable<float>({2}, 1.0f);
  strategy.run([&](auto& replica) {
    replica.merge_call([&](auto& scope) {
      const auto copies = dist::update(scope, variable, [&](auto& context) {
        variable.assign(context, 3.0f);
        return context.local_index();
      });
      CHECK(copies.size() == variable.copies());
    });
    CHECK(variable.read(replica)[1] == 3.0f);
    replica.barrier();
    dist::update(replica, variable, [&](auto& context) { variable.assign(context, 5.0f); });
    CHECK(variable.read(replica)[1] == 5.0f);
  });
}
