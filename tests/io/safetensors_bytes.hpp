/// Hand-written safetensors files, and one written by the package safetensors 0.8.0.
#pragma once

#include <cstddef>
#include <string>

#include <io/bytes.hpp>

namespace dist_test {

/// Returns a file with this header, followed by these bytes.
inline Bytes safetensors(const std::string& header, const Bytes& data = {}) {
  Bytes length;
  for (std::size_t i = 0; i < 8; ++i) length.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  return joined({length, bytes(header), data});
}

/// safetensors.numpy.save({"b/kernel": float32 [[0, 1, 2], [3, 4, 5]], "a": [True, False], "scalar": int64 7, "empty":
/// float16 of shape (0, 3)}, metadata={"format": "np", "note": "Größe"})
inline const Bytes saved_by_safetensors = safetensors(
    "{\"__metadata__\":{\"note\":\"Gr\xc3\xb6\xc3\x9f"
    "e\",\"format\":\"np\"},"
    "\"scalar\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
    "\"b/kernel\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
    "\"empty\":{\"dtype\":\"F16\",\"shape\":[0,3],\"data_offsets\":[32,32]},"
    "\"a\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[32,34]}}  ",
    joined({bytes({7, 0, 0, 0, 0, 0, 0, 0}), bytes({0, 0, 0, 0, 0, 0, 0x80, 0x3F, 0, 0, 0, 0x40}),
            bytes({0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40, 0, 0, 0xA0, 0x40}), bytes({1, 0})}));

}  // namespace dist_test
