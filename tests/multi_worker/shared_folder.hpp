#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <string>

#include <support/system_files.hpp>

#include "of_workers.hpp"

namespace of_workers {

/// A folder that all workers have, removed when all are done with it.
class SharedFolder {
 public:
  SharedFolder() {
    if (my_rank() == 0) files_.emplace();
    root_ = my_rank() == 0 ? files_->root() : "";
    std::size_t length = root_.size();
    MPI_Bcast(&length, sizeof length, MPI_BYTE, 0, MPI_COMM_WORLD);
    root_.resize(length);
    MPI_Bcast(root_.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
  }
  ~SharedFolder() { meet(); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::optional<SystemFiles> files_;
  std::string root_;
};

}  // namespace of_workers
