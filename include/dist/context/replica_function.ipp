#pragma once

#include <dist/context/replica_function.hpp>

namespace dist::detail {

DIST_COLD void rethrow_failure_of_peer(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const Unavailable&) {
    throw;
  } catch (const PeerError&) {
    throw;
  } catch (...) {
  }
}

DIST_COLD void refuse_inside(std::string_view method, std::string_view instead) {
  throw WrongStrategy(concat("strategy.", method, " was called inside a replica function"),
                      "it is for the cross-replica context, which sees all replicas at once",
                      concat("In a replica function ", instead));
}

DIST_COLD void refuse_inside_another_strategy(std::string_view method) {
  throw WrongStrategy(concat("strategy.", method, " was called inside a replica function of another strategy"),
                      "strategies cannot be nested: each replica would make this call separately",
                      "Call it outside run, or use the strategy whose context the replica function received");
}

DIST_COLD void refuse_values(std::string_view giver, std::size_t values, std::size_t replicas) {
  throw WrongStrategy(concat(giver, " per-replica values of another strategy"),
                      concat(values, " values for ", replicas, " replicas"),
                      "Use values that this strategy's run or distribute_dataset returned");
}

DIST_COLD void refuse_gradients(std::string_view operation, std::size_t replica, std::size_t gradients,
                                std::size_t elements) {
  throw ShapeMismatch(concat("The gradient of replica ", replica, " does not fit the elements that it changes"),
                      concat(gradients, " elements for ", elements),
                      concat("Give ", operation, " one gradient element for each element to change"));
}

DIST_COLD void refuse_root(std::size_t root, std::size_t replicas) {
  throw InvalidArgument("The root of a broadcast is out of range", concat("root ", root, " of ", replicas, " replicas"),
                        "Give a root from 0 to num_replicas_in_sync() - 1");
}

DIST_COLD void refuse_tensors(std::size_t replica, std::size_t count_of_first, std::size_t count) {
  throw ShapeMismatch(concat("The tensors of replicas 0 and ", replica, " cannot be reduced"),
                      concat(count_of_first, " and ", count, " tensors, some of which differ in extent"),
                      "Give tensors of the same extents, in the same order, on every replica");
}

DIST_INLINE void require_equal_shapes(std::span<const Shape> shapes) {
  for (std::size_t rank = 1; rank < shapes.size(); ++rank)
    if (shapes[rank] != shapes[0])
      throw ShapeMismatch(concat("The tensors of replicas 0 and ", rank, " cannot be reduced"),
                          concat("shapes ", to_string(shapes[0]), " and ", to_string(shapes[rank])),
                          "Give tensors of one shape on every replica");
}

}  // namespace dist::detail
