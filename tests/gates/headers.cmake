# Every header stands alone: it compiles as the only include of a file, and again after itself. Everything is then linked
# into one program together with one file per folder, so that each header is there at least twice and a function that is
# not inline is a duplicate symbol. The files per folder are also compiled by the other compilers of this machine.

set(header_dir "${CMAKE_CURRENT_BINARY_DIR}/headers")
set(alone "")
set(folders "")
set(header_libraries dist::dist)
foreach(header IN LISTS dist_headers)
  get_filename_component(extension "${header}" LAST_EXT)
  dist_requirements("${header}")
  if(dist_missing OR NOT extension STREQUAL ".hpp")
    continue()
  endif()
  list(APPEND header_libraries ${dist_libraries})
  file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/include" "${header}")
  # A macro I, as <complex.h> has one, must not hurt; packages may be less careful than we are.
  dist_needs_of(needs "${header}")
  if(needs STREQUAL "")
    set(bait "#define I dist_macro_bait\n")
    string(REGEX REPLACE "^dist/([^/]*)(/.*)?$" "\\1" folder "${name}")
    string(REPLACE ".hpp" "" folder "${folder}")
    list(APPEND folders ${folder})
    string(PREPEND folder_${folder} "#include <${name}>\n")
  else()
    set(bait "")
  endif()
  file(CONFIGURE OUTPUT "${header_dir}/alone/${name}.cpp" CONTENT "${bait}#include <${name}>\n#include <${name}>\n" @ONLY)
  list(APPEND alone "${header_dir}/alone/${name}.cpp")
  # Headers with a package join the second file of their own.
  if(NOT needs STREQUAL "")
    file(CONFIGURE OUTPUT "${header_dir}/again/${name}.cpp" CONTENT "#include <${name}>\n" @ONLY)
    list(APPEND alone "${header_dir}/again/${name}.cpp")
  endif()
endforeach()
list(REMOVE_DUPLICATES header_libraries)
list(REMOVE_DUPLICATES folders)

set(together "")
foreach(folder IN LISTS folders)
  file(CONFIGURE OUTPUT "${header_dir}/together/${folder}.cpp" CONTENT "${folder_${folder}}" @ONLY)
  list(APPEND together "${header_dir}/together/${folder}.cpp")
endforeach()

add_library(dist_headers OBJECT ${alone} ${together})
target_link_libraries(dist_headers PRIVATE ${header_libraries} dist_warnings)
target_compile_options(dist_headers PRIVATE -O0)
file(CONFIGURE OUTPUT "${header_dir}/main.cpp" CONTENT "int main() {}\n" @ONLY)
add_executable(dist_headers_linked "${header_dir}/main.cpp" $<TARGET_OBJECTS:dist_headers>)
target_link_libraries(dist_headers_linked PRIVATE ${header_libraries})
add_test(NAME gates.headers COMMAND dist_headers_linked)

# dist_headers_under(<name> <compiler> <flags...>): a test that compiles the files per folder with another compiler. The
# objects are build outputs, so that only what changed is compiled again.
function(dist_headers_under name compiler)
  set(objects "")
  foreach(source IN LISTS together)
    get_filename_component(folder "${source}" NAME_WE)
    set(object "${header_dir}/${name}/${folder}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${compiler}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" ${ARGN} -MD -MF "${object}.d" -c "${source}"
              -o "${object}"
      DEPENDS "${source}" DEPFILE "${object}.d" VERBATIM COMMENT "Compiling the headers of ${folder} with ${name}")
    list(APPEND objects "${object}")
  endforeach()
  file(MAKE_DIRECTORY "${header_dir}/${name}")
  add_custom_target(dist_headers_${name} DEPENDS ${objects})
  add_test(NAME gates.headers_${name}
           COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target dist_headers_${name})
  set_tests_properties(gates.headers_${name} PROPERTIES TIMEOUT 600 RESOURCE_LOCK build)
endfunction()

set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  find_program(DIST_CLANG NAMES clang++ clang++-14)
  mark_as_advanced(DIST_CLANG)
  if(DIST_CLANG)
    dist_headers_under(clang "${DIST_CLANG}" ${warnings})
  else()
    dist_add_skipped(gates.headers_clang "clang++ was not found")
  endif()
endif()
if(DIST_HAVE_CUDA)
  dist_headers_under(nvcc "${DIST_NVCC}" -x cu -arch=sm_90 -Werror=all-warnings -Xcompiler=-Wall,-Wextra)
elseif(DIST_CUDA)
  dist_add_skipped(gates.headers_nvcc "nvcc was not found")
endif()
