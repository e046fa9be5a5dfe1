/// Hand-written NPY files, and ZIP archives.
#pragma once

#include <cstddef>
#include <string>

#include <io/bytes.hpp>

namespace dist_test {

/// Returns an NPY file of version 1.0 with this dictionary and these elements.
inline Bytes npy(const std::string& dictionary, const Bytes& elements = {}) {
  return joined(
      {bytes("\x93NUMPY"),
       bytes({1, 0, static_cast<unsigned>(dictionary.size() % 256), static_cast<unsigned>(dictionary.size() / 256)}),
       bytes(dictionary), elements});
}

/// Returns the dictionary that numpy.save writes, without padding.
inline std::string npy_header(const std::string& descr, const std::string& shape, bool fortran_order = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran_order ? "True" : "False") + ", 'shape': " + shape +
         ", }";
}

}  // namespace dist_test
