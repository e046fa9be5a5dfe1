# The headers of a folder compile together, without warnings, under g++ and clang++, those of all folders under nvcc; those
# that need packages in a file of their own, under the project's compiler; all of them again after themselves. That each header stands
# alone is shown by its test, which includes it first (include_graph_test.cpp); one whose definitions stand in a file of
# their own, which tests that link dist::compiled do not see, is compiled alone here.

set(header_dir "${CMAKE_CURRENT_BINARY_DIR}/headers")
set(alone "")
set(folders "")
set(folders_with_packages "")
set(folder_all "")
set(header_libraries dist::dist)
foreach(header IN LISTS dist_headers)
  get_filename_component(extension "${header}" LAST_EXT)
  dist_requirements("${header}")
  if(dist_missing OR NOT extension STREQUAL ".hpp")
    continue()
  endif()
  list(APPEND header_libraries ${dist_libraries})
  file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/include" "${header}")
  string(REGEX REPLACE "^dist/([^/]*)(/.*)?$" "\\1" folder "${name}")
  string(REPLACE ".hpp" "" folder "${folder}")
  string(REGEX REPLACE "hpp$" "ipp" definitions "${header}")
  if(EXISTS "${definitions}")
    file(CONFIGURE OUTPUT "${header_dir}/alone/${name}.cpp" CONTENT "#include <${name}>\n" @ONLY)
    list(APPEND alone "${header_dir}/alone/${name}.cpp")
  endif()
  dist_needs_of(needs "${header}")
  if(needs STREQUAL "")
    list(APPEND folders ${folder})
    string(PREPEND folder_${folder} "#include <${name}>\n")
    string(PREPEND folder_all "#include <${name}>\n")
  else()
    list(APPEND folders_with_packages ${folder})
    string(PREPEND packages_of_${folder} "#include <${name}>\n")
  endif()
endforeach()
list(REMOVE_DUPLICATES header_libraries)
list(REMOVE_DUPLICATES folders)
list(REMOVE_DUPLICATES folders_with_packages)

set(packages "")
foreach(folder IN LISTS folders_with_packages)
  file(CONFIGURE OUTPUT "${header_dir}/packages/${folder}.cpp" @ONLY
       CONTENT "${packages_of_${folder}}${packages_of_${folder}}")
  list(APPEND packages "${header_dir}/packages/${folder}.cpp")
endforeach()
# A macro I, as <complex.h> has one, must not hurt; packages may be less careful than we are.
set(together "")
foreach(folder IN LISTS folders)
  file(CONFIGURE OUTPUT "${header_dir}/together/${folder}.cpp" @ONLY
       CONTENT "#define I dist_macro_bait\n${folder_${folder}}${folder_${folder}}")
  list(APPEND together "${header_dir}/together/${folder}.cpp")
endforeach()

# Several files of a program may include a header, so its functions and variables are inline: the objects define nothing
# that a second one must not.
add_library(dist_headers OBJECT ${alone} ${together} ${packages})
target_link_libraries(dist_headers PRIVATE ${header_libraries} dist_warnings)
target_compile_options(dist_headers PRIVATE -O0)
add_test(NAME gates.headers
         COMMAND "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}" "-DOBJECTS=$<JOIN:$<TARGET_OBJECTS:dist_headers>,|>"
                 -P "${CMAKE_CURRENT_SOURCE_DIR}/gates/headers_check.cmake")

# dist_checked_with(<out> <compiler> <source> <flag>...): a file that shows that the compiler accepts the source. It is a
# build output, so that only what changed is compiled again. The flags say how far the compiler goes.
function(dist_checked_with out compiler source)
  string(MAKE_C_IDENTIFIER "${source}" checked)
  cmake_path(GET compiler STEM name)
  set(checked "${header_dir}/checked/${name}/${checked}")
  add_custom_command(
    OUTPUT "${checked}"
    COMMAND "${compiler}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" ${ARGN} -MD -MF "${checked}.d" -MT "${checked}"
            "${source}" -o "${checked}.o"
    COMMAND "${CMAKE_COMMAND}" -E touch "${checked}"
    DEPENDS "${source}" DEPFILE "${checked}.d" VERBATIM COMMAND_EXPAND_LISTS
    COMMENT "Compiling ${source} with ${name}")
  set(${out} "${checked}" PARENT_SCOPE)
endfunction()

# dist_headers_under(<name> <compiler> <flag>...): a test that compiles the files of `sources` with another compiler.
function(dist_headers_under name compiler)
  set(all "")
  foreach(source IN LISTS sources)
    dist_checked_with(checked "${compiler}" "${source}" ${ARGN})
    list(APPEND all "${checked}")
  endforeach()
  file(MAKE_DIRECTORY "${header_dir}/checked/${name}")
  add_custom_target(dist_headers_${name} DEPENDS ${all})
  add_test(NAME gates.headers_${name}
           COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target dist_headers_${name})
  set_tests_properties(gates.headers_${name} PROPERTIES TIMEOUT 600 COST 80 RESOURCE_LOCK build)
endfunction()

set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  find_program(DIST_CLANG NAMES clang++ clang++-14)
  mark_as_advanced(DIST_CLANG)
  if(DIST_CLANG)
    set(sources ${together})
    dist_headers_under(clang "${DIST_CLANG}" ${warnings} -c -fsyntax-only)
  else()
    dist_add_skipped(gates.headers_clang "clang++ was not found")
  endif()
endif()
if(DIST_HAVE_NVCC)
  # The steps after the front ends find no errors in C++, and take half the time.
  set(nvcc_flags -x cu -arch=compute_90 -code=compute_90 -Werror=all-warnings -Xcompiler=-Wall,-Wextra -Xcicc -O0)
  set(sources "${header_dir}/nvcc.cpp")
  file(CONFIGURE OUTPUT "${sources}" CONTENT "#define I dist_macro_bait\n${folder_all}" @ONLY)
  dist_headers_under(nvcc "${NVCC_PROGRAM}" ${nvcc_flags} -c -Xcompiler=-fsyntax-only)
  # Kernels are templates: tests of devices, the examples and the benchmarks make them. What nvcc hands to the host's compiler
  # is not compiled: that compiler sees the same sources as programs for the fake GPU.
  if(DIST_HAVE_CUDA)
    set(sources device/cuda/device_test.cpp device/cuda/body_test.cpp device/cuda/optimizer_test.cpp
        comm/cuda/direct_all_reduce_test.cpp comm/cuda/hierarchical_copy_all_reduce_test.cpp
        comm/cuda/reduction_to_one_device_test.cpp comm/cuda/reduction_to_one_device_suite_test.cpp
        strategy/cuda/central_storage_test.cpp strategy/cuda/variables_test.cpp strategy/step_graph_test.cpp)
    if(DIST_HAVE_THRUST)
      list(APPEND sources variable/slices_deduplicator_test.cpp)
    endif()
    if(DIST_HAVE_NCCL)
      list(APPEND sources comm/nccl/nccl_all_reduce_test.cpp)
    endif()
    if(DIST_HAVE_CUDNN)
      list(APPEND sources nn/cudnn/backend_test.cpp)
    endif()
    set(packages "")
    if(DIST_HAVE_MPI AND DIST_HAVE_PMIX AND DIST_HAVE_JSON AND DIST_HAVE_CRYPTO)
      list(APPEND sources gates/nvcc/multi_worker.cu)
      if(DIST_HAVE_NCCL)
        list(APPEND sources gates/nvcc/multi_worker_nccl.cu)
      endif()
      set(packages "-I$<JOIN:$<TARGET_PROPERTY:dist_headers,INCLUDE_DIRECTORIES>,$<SEMICOLON>-I>" -DOMPI_SKIP_MPICXX=1
          -DMPICH_SKIP_MPICXX=1)
    endif()
    get_property(gpu_examples GLOBAL PROPERTY dist_gpu_examples)
    get_property(gpu_benchmarks GLOBAL PROPERTY dist_gpu_benchmarks)
    set(all "")
    foreach(test IN LISTS sources gpu_examples gpu_benchmarks)
      cmake_path(ABSOLUTE_PATH test BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE source)
      dist_checked_with(checked "${NVCC_PROGRAM}" "${source}" ${nvcc_flags} -cuda "-I${CMAKE_CURRENT_SOURCE_DIR}"
                        "-I${PROJECT_SOURCE_DIR}/examples" "-I${PROJECT_SOURCE_DIR}/examples/backend/cudnn"
                        ${packages} -DDOCTEST_CONFIG_VOID_CAST_EXPRESSIONS)
      list(APPEND all "${checked}")
    endforeach()
    # The headers for GPUs, all of them in one object, which defines nothing that a second one must not.
    set(includes "")
    foreach(header IN LISTS dist_headers)
      dist_requirements("${header}")
      if(header MATCHES "\\.cuh$" AND NOT dist_missing)
        file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/include" "${header}")
        string(APPEND includes "#include <${name}>\n")
      endif()
    endforeach()
    set(object "${header_dir}/gpus.o")
    file(CONFIGURE OUTPUT "${header_dir}/gpus.cu" CONTENT "${includes}${includes}" @ONLY)
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${NVCC_PROGRAM}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" -x cu -arch=sm_90 -Werror=all-warnings -MD
              -MF "${object}.d" -MT "${object}" -c "${header_dir}/gpus.cu" -o "${object}"
      COMMAND "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}" "-DOBJECTS=${object}"
              -P "${CMAKE_CURRENT_SOURCE_DIR}/gates/headers_check.cmake"
      DEPENDS "${header_dir}/gpus.cu" DEPFILE "${object}.d" VERBATIM COMMENT "Compiling the headers for GPUs with nvcc")
    list(APPEND all "${object}")
    add_custom_target(dist_kernels_nvcc DEPENDS ${all})
    add_test(NAME gates.kernels_nvcc
             COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target dist_kernels_nvcc)
    set_tests_properties(gates.kernels_nvcc PROPERTIES TIMEOUT 600 COST 60 RESOURCE_LOCK build)
  endif()
elseif(DIST_NVCC)
  dist_add_skipped(gates.headers_nvcc "nvcc was not found")
  if(DIST_HAVE_CUDA)
    dist_add_skipped(gates.kernels_nvcc "nvcc was not found")
  endif()
endif()
