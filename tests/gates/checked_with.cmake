# Flags with which a source is compiled only as a check.
set(dist_checked_dir "${CMAKE_CURRENT_BINARY_DIR}/checked")
# After the front ends, nvcc's steps find no C++ errors and take half the time.
set(dist_nvcc_flags -x cu -arch=compute_90 -code=compute_90 -Werror=all-warnings -Xcompiler=-Wall,-Wextra -Xcicc -O0)

# dist_checked_with(<out> <compiler> <source> <flag>...): a file that shows that the compiler accepts the source. It is
# a build output, so only changed sources are compiled again. The flags select how many steps the compiler runs.
function(dist_checked_with out compiler source)
  string(MAKE_C_IDENTIFIER "${source}" checked)
  cmake_path(GET compiler STEM name)
  file(MAKE_DIRECTORY "${dist_checked_dir}/${name}")
  set(checked "${dist_checked_dir}/${name}/${checked}")
  add_custom_command(
    OUTPUT "${checked}"
    COMMAND "${compiler}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" ${ARGN} -MD -MF "${checked}.d" -MT "${checked}"
            "${source}" -o "${checked}.o"
    COMMAND "${CMAKE_COMMAND}" -E touch "${checked}"
    DEPENDS "${source}" DEPFILE "${checked}.d" VERBATIM COMMAND_EXPAND_LISTS
    COMMENT "Compiling ${source} with ${name}")
  set(${out} "${checked}" PARENT_SCOPE)
endfunction()
