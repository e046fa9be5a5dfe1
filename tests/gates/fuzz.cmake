# Each tests/fuzz/<name>.cpp is a libFuzzer program, which runs for some seconds with bounded memory, from the inputs of
# tests/fuzz/corpus/<name>/ if there are any. It is compiled by clang, which contains the fuzzer, even if another
# compiler compiles the rest.
file(GLOB fuzzers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/*.cpp")
find_program(DIST_CLANG NAMES clang++ clang++-14)
mark_as_advanced(DIST_CLANG)

set(fuzz_dir "${CMAKE_CURRENT_BINARY_DIR}/fuzz")
set(fuzz_flags -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
if(DIST_CLANG AND NOT DIST_FUZZER_FOR STREQUAL DIST_CLANG)
  file(CONFIGURE OUTPUT "${fuzz_dir}/probe.cpp" @ONLY CONTENT [[
#include <cstddef>
#include <cstdint>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }
]])
  execute_process(COMMAND "${DIST_CLANG}" ${fuzz_flags} "${fuzz_dir}/probe.cpp" -o "${fuzz_dir}/probe"
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(DIST_FUZZER_FOR "${DIST_CLANG}" CACHE INTERNAL "the clang++ that is known to link libFuzzer")
  endif()
endif()

foreach(source IN LISTS fuzzers)
  get_filename_component(name "${source}" NAME_WE)
  dist_requirements("${source}")
  if(dist_off)
    continue()
  elseif(dist_missing)
    dist_add_skipped(fuzz.${name} "the component ${dist_missing} was not found")
    continue()
  elseif(NOT DIST_CLANG OR NOT DIST_FUZZER_FOR STREQUAL DIST_CLANG)
    dist_add_skipped(fuzz.${name} "clang++ with libFuzzer was not found (apt install clang libclang-rt-dev)")
    continue()
  endif()
  set(libraries -pthread)
  if("dist::gzip" IN_LIST dist_libraries)
    list(APPEND libraries ${ZLIB_LIBRARIES})
  endif()
  set(folders "-I${PROJECT_SOURCE_DIR}/include")
  if("dist::json" IN_LIST dist_libraries)
    list(APPEND libraries "${jansson_LIBRARY}")
    list(APPEND folders "-idirafter${jansson_INCLUDE_DIR}")  # behind the compiler's own, should it be /usr/include
  endif()
  set(program "${fuzz_dir}/${name}")
  add_custom_command(
    OUTPUT "${program}"
    COMMAND "${DIST_CLANG}" ${fuzz_flags} ${folders} -MD -MF "${program}.d" -MT "${program}" "${source}"
            -o "${program}" ${libraries}
    DEPENDS "${source}" DEPFILE "${program}.d" VERBATIM COMMENT "Building the fuzzer ${name}")
  add_custom_target(fuzz_${name} ALL DEPENDS "${program}")
  # The fuzzer writes new inputs to the first folder; the seeds do not change.
  file(MAKE_DIRECTORY "${fuzz_dir}/found/${name}")
  set(inputs "${fuzz_dir}/found/${name}")
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
    list(APPEND inputs "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
  endif()
  add_test(NAME fuzz.${name}
           COMMAND "${program}" -max_total_time=3 -rss_limit_mb=512 -timeout=10 -verbosity=0 ${inputs}
           WORKING_DIRECTORY "${fuzz_dir}")
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 60)
endforeach()
