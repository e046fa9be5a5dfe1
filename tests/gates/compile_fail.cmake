# Programs that must not compile, with the message that compilers must print first: see compile_fail_check.cmake. The
# CONTROL branches of all of them are compiled together: see compile_fail_controls.cmake.

set(compile_fail_compilers "${CMAKE_CXX_COMPILER}")
if(DIST_CLANG AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # looked for in headers.cmake
  list(APPEND compile_fail_compilers "${DIST_CLANG}")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  dist_add_skipped(compile_fail.with_clang "clang++ was not found")
endif()

set(compile_fail_folders "${PROJECT_SOURCE_DIR}/include")
foreach(component IN ITEMS TORCH GRPC MPI PMIX CUDA NCCL PJRT)  # packages that compilers do not find by themselves
  if(DIST_HAVE_${component})
    string(TOLOWER ${component} component)
    list(APPEND compile_fail_folders "$<TARGET_PROPERTY:${dist_targets_${component}},INTERFACE_INCLUDE_DIRECTORIES>")
  endif()
endforeach()
set(compile_fail_includes "$<JOIN:${compile_fail_folders},$<COMMA>>")

# Precompiled headers of the cases, once for each compiler: reading headers takes longer than rejecting a case. Headers
# beyond dist.hpp are precompiled for clang++ only, because g++ reads precompiled headers as a whole.
set(preludes "${CMAKE_CURRENT_BINARY_DIR}/compile_fail")
set(prelude_of_dist "#include <dist/dist.hpp>\n")
set(prelude_of_all "${prelude_of_dist}")
foreach(header IN ITEMS checkpoint/checkpoint.hpp coordinator/cluster_coordinator.hpp data.hpp multi_worker.hpp nn.hpp
        server/serve.hpp tpu.hpp train.hpp)
  dist_requirements("${PROJECT_SOURCE_DIR}/include/dist/${header}")
  if(NOT dist_missing)
    string(APPEND prelude_of_all "#include <dist/${header}>\n")
  endif()
endforeach()
set(precompiled "")
set(number 0)
foreach(compiler IN LISTS compile_fail_compilers)
  set(names dist)
  set(instantiate "")
  if(compiler STREQUAL "${DIST_CLANG}" OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND names all)
    set(instantiate -fpch-instantiate-templates)
  endif()
  foreach(name IN LISTS names)
    set(prelude "${preludes}/${number}/${name}.hpp")
    file(CONFIGURE OUTPUT "${prelude}" CONTENT "${prelude_of_${name}}" @ONLY)
    add_custom_command(
      OUTPUT "${prelude}.gch"
      COMMAND "${compiler}" -std=c++20 "-I$<JOIN:${compile_fail_folders},$<SEMICOLON>-idirafter>" ${instantiate} -x c++-header
              "${prelude}" -MD -MF "${prelude}.d" -MT "${prelude}.gch" -o "${prelude}.gch"
      DEPENDS "${prelude}" DEPFILE "${prelude}.d" VERBATIM COMMAND_EXPAND_LISTS
      COMMENT "Precompiling headers for the compile-fail cases")
    list(APPEND precompiled "${prelude}.gch")
  endforeach()
  math(EXPR number "${number} + 1")
endforeach()
add_custom_target(dist_compile_fail_preludes DEPENDS ${precompiled})
add_test(NAME compile_fail.preludes
         COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target dist_compile_fail_preludes)
set_tests_properties(compile_fail.preludes PROPERTIES FIXTURES_SETUP dist_compile_fail_preludes RESOURCE_LOCK build)

# dist_add_compile_fail(<name> <source>): a test with every compiler, or without DIST_EVERY_COMPILER with one: the first
# compiler for every eighth case, the last one, clang++, for the others, which takes a third of the time. Sets
# compile_fail_chosen.
set(compile_fail_turn 0)
function(dist_add_compile_fail name source)
  set(chosen "${compile_fail_compilers}")
  set(first 0)
  if(NOT DIST_EVERY_COMPILER)
    math(EXPR turn "(${compile_fail_turn} + 1) % 8")
    set(compile_fail_turn ${turn} PARENT_SCOPE)
    if(NOT turn EQUAL 0)
      list(LENGTH compile_fail_compilers first)
      math(EXPR first "${first} - 1")
    endif()
    list(GET compile_fail_compilers ${first} chosen)
  endif()
  set(compile_fail_chosen "${chosen}" PARENT_SCOPE)
  list(JOIN chosen "," chosen)
  add_test(NAME ${name}
           COMMAND "${CMAKE_COMMAND}" "-DCOMPILERS=${chosen}" -DFIRST=${first} "-DINCLUDES=${compile_fail_includes}"
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
foreach(source IN LISTS cases)
  get_filename_component(name "${source}" NAME_WE)
  dist_requirements("${source}")
  if(NOT dist_missing)
    dist_add_compile_fail(compile_fail.${name} "${source}")
    foreach(compiler IN LISTS compile_fail_chosen)
      string(MAKE_C_IDENTIFIER "controls_of_${compiler}" controls)
      list(APPEND ${controls} "${source}")
    endforeach()
  elseif(NOT dist_off)
    dist_add_skipped(compile_fail.${name} "the component ${dist_missing} was not found")
  endif()
endforeach()
foreach(compiler IN LISTS compile_fail_compilers)
  get_filename_component(name "${compiler}" NAME)
  string(MAKE_C_IDENTIFIER "controls_of_${compiler}" controls)
  dist_add_controls(compile_fail.controls_${name} "${compiler}" "${${controls}}")
endforeach()

# The checks themselves, with cases that they must reject.
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
