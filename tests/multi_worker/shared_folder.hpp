// A folder of all workers.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <string>

#include <support/temporary_folder.hpp>

#include "of_workers.hpp"

namespace of_workers {

/// A new folder, created by the first worker and removed when all have finished with it.
class SharedFolder {
 public:
  SharedFolder() {
    if (my_rank() == 0) path_ = files_.emplace().path();
    std::size_t length = path_.size();
    MPI_Bcast(&length, sizeof length, MPI_BYTE, 0, MPI_COMM_WORLD);
    path_.resize(length);
    MPI_Bcast(path_.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
  }
  ~SharedFolder() { meet(); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::optional<support::TemporaryFolder> files_;
  std::string path_;
};

}  // namespace of_workers
