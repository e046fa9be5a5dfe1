# Programs that must not compile, with the sentence that the compilers must say first; see compile_fail_check.cmake.
# The CONTROL branches of all of them are compiled together; see compile_fail_controls.cmake.

set(compile_fail_compilers "${CMAKE_CXX_COMPILER}")
if(DIST_CLANG AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # looked for in headers.cmake
  list(APPEND compile_fail_compilers "${DIST_CLANG}")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  dist_add_skipped(compile_fail.with_clang "clang++ was not found")
endif()
list(JOIN compile_fail_compilers "," compile_fail_compilers_joined)

set(compile_fail_includes "${PROJECT_SOURCE_DIR}/include")
foreach(component IN ITEMS TORCH GRPC MPI PMIX CUDA NCCL)  # packages that compilers do not find by themselves
  if(DIST_HAVE_${component})
    string(TOLOWER ${component} component)
    string(APPEND compile_fail_includes
           ",$<JOIN:$<TARGET_PROPERTY:${dist_targets_${component}},INTERFACE_INCLUDE_DIRECTORIES>,$<COMMA>>")
  endif()
endforeach()

# What most cases include, precompiled once for each compiler: a case takes longer to read it than to be refused. (More
# than dist.hpp does not pay: g++ takes a tenth of a second longer to load a header with nn and data.)
set(preludes "${CMAKE_CURRENT_BINARY_DIR}/compile_fail")
set(precompiled "")
set(number 0)
foreach(compiler IN LISTS compile_fail_compilers)
  set(prelude "${preludes}/${number}/prelude.hpp")
  set(instantiate "")
  if(compiler STREQUAL "${DIST_CLANG}" OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(instantiate -fpch-instantiate-templates)
  endif()
  file(CONFIGURE OUTPUT "${prelude}" CONTENT "#include <dist/dist.hpp>\n" @ONLY)
  add_custom_command(
    OUTPUT "${prelude}.gch"
    COMMAND "${compiler}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" ${instantiate} -x c++-header "${prelude}" -MD -MF
            "${prelude}.d" -MT "${prelude}.gch" -o "${prelude}.gch"
    DEPENDS "${prelude}" DEPFILE "${prelude}.d" VERBATIM COMMENT "Precompiling dist.hpp for the compile-fail cases")
  list(APPEND precompiled "${prelude}.gch")
  math(EXPR number "${number} + 1")
endforeach()
add_custom_target(dist_compile_fail_preludes DEPENDS ${precompiled})
add_test(NAME compile_fail.preludes
         COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target dist_compile_fail_preludes)
set_tests_properties(compile_fail.preludes PROPERTIES FIXTURES_SETUP dist_compile_fail_preludes RESOURCE_LOCK build)

# dist_add_compile_fail(<name> <source>): with every compiler, or without DIST_EVERY_COMPILER in turns with one of them.
set(compile_fail_turn 0)
function(dist_add_compile_fail name source)
  set(compilers "${compile_fail_compilers_joined}")
  set(first 0)
  if(NOT DIST_EVERY_COMPILER)
    list(LENGTH compile_fail_compilers number)
    math(EXPR first "${compile_fail_turn} % ${number}")
    list(GET compile_fail_compilers ${first} compilers)
    math(EXPR turn "${compile_fail_turn} + 1")
    set(compile_fail_turn ${turn} PARENT_SCOPE)
  endif()
  add_test(NAME ${name}
           COMMAND "${CMAKE_COMMAND}" "-DCOMPILERS=${compilers}" -DFIRST=${first} "-DINCLUDES=${compile_fail_includes}"
                   "-DPRELUDES=${preludes}" "-DSOURCE=${source}" -P
                   "${PROJECT_SOURCE_DIR}/tests/gates/compile_fail_check.cmake")
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 FIXTURES_REQUIRED dist_compile_fail_preludes)
endfunction()

function(dist_add_controls name compiler sources)
  list(JOIN sources "," sources)
  add_test(NAME ${name}
           COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${compiler}" "-DINCLUDES=${compile_fail_includes}"
                   "-DSOURCES=${sources}" "-DOUTPUT=${preludes}/${name}.cpp" -P
                   "${PROJECT_SOURCE_DIR}/tests/gates/compile_fail_controls.cmake")
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()

file(GLOB cases CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/*.cpp")
set(controls "")
foreach(source IN LISTS cases)
  get_filename_component(name "${source}" NAME_WE)
  dist_requirements("${source}")
  if(NOT dist_missing)
    dist_add_compile_fail(compile_fail.${name} "${source}")
    list(APPEND controls "${source}")
  elseif(NOT dist_off)
    dist_add_skipped(compile_fail.${name} "the component ${dist_missing} was not found")
  endif()
endforeach()
foreach(compiler IN LISTS compile_fail_compilers)
  get_filename_component(name "${compiler}" NAME)
  dist_add_controls(compile_fail.controls_${name} "${compiler}" "${controls}")
endforeach()

# The checks themselves, on cases that they must refuse.
set(refused "${CMAKE_CURRENT_SOURCE_DIR}/gates/compile_fail")
foreach(entry "compiles=compiles with .*, and must not" "other_message=for another reason"
              "no_expectation=no line '// expect: ...'" "another_error_first=another error comes before the sentence"
              "many_lines_follow=lines follow the sentence, more than 12"
              "another_error_follows=other errors follow the only one")
  string(REGEX MATCH "^([a-z_]+)=(.*)$" entry "${entry}")
  set(name gates.compile_fail_${CMAKE_MATCH_1})
  set(sentence "${CMAKE_MATCH_2}")
  dist_add_compile_fail(${name} "${refused}/${CMAKE_MATCH_1}.cpp")
  set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "${sentence}")
endforeach()
foreach(control control_broken control_broken_alone)
  dist_add_controls(gates.compile_fail_${control} "${CMAKE_CXX_COMPILER}" "${refused}/${control}.cpp")
  set_tests_properties(gates.compile_fail_${control} PROPERTIES PASS_REGULAR_EXPRESSION "a control does not compile")
endforeach()
