#include <dist/coordinator/remote_value.hpp>

#include <string>

#include <doctest/doctest.h>

TEST_CASE("RemoteError has the worker, the type and the text of the exception") {
  const dist::RemoteError error{3, "10.0.0.3:2222", "train_step", "std::out_of_range", "row 7 of 5"};
  CHECK(error.what() == std::string("A scheduled function failed on worker 3 at 10.0.0.3:2222 (train_step threw "
                                    "std::out_of_range). Its message: row 7 of 5."));
  CHECK(error.worker() == 3);
  CHECK(error.thrown() == "std::out_of_range");
  CHECK(error.why() == "row 7 of 5");
  CHECK(std::string(dist::RemoteError{0, "a:1", "f", "", "it could not begin"}.what()) ==
        "A scheduled function failed on worker 0 at a:1 (f threw an error). Its message: it could not begin.");
}

TEST_CASE("Cancelled suggests to schedule the function again") {
  CHECK(std::string(dist::Cancelled{"A function was cancelled", "another one failed"}.what()) ==
        "A function was cancelled (another one failed). Schedule the function again if its result is wanted.");
}
