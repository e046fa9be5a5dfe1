# Finds nvcc as NVCC_PROGRAM, and sets DistNvcc_FOUND and DistNvcc_VERSION.
dist_find_nvcc(NVCC_PROGRAM)
mark_as_advanced(NVCC_PROGRAM)
dist_nvcc_version(DistNvcc_VERSION "${NVCC_PROGRAM}")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DistNvcc REQUIRED_VARS NVCC_PROGRAM VERSION_VAR DistNvcc_VERSION)
