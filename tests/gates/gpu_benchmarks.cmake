# GPU benchmarks, benchmarks/gpus/*.cpp. Each runs on fake GPUs, with sizes so small that only the format of its table
# matters. nvcc checks them (gates.kernels_nvcc), and with DIST_GPU_PROGRAMS compiles them for measurements (target
# gpu_benchmarks). Their includes determine the components.

if(DIST_GPU_PROGRAMS)
  add_custom_target(gpu_benchmarks)
endif()

# dist_add_gpu_benchmark_program(<name>): for the GPUs of this machine, after dist_requirements:
# build/.../benchmarks/gpus/<name>.
function(dist_add_gpu_benchmark_program name)
  set(target on_gpus_bench_${name})
  dist_gpu_libraries(absent)
  if(absent)
    message(STATUS "  benchmark ${name} of GPUs is left out: ${absent}")
    return()
  endif()
  dist_cuda_source(source "${PROJECT_SOURCE_DIR}/benchmarks/gpus/${name}.cpp" gpu_benchmarks/${name})
  add_executable(${target} EXCLUDE_FROM_ALL "${source}")
  target_link_libraries(${target} PRIVATE ${dist_libraries})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/benchmarks/gpus")
  add_dependencies(gpu_benchmarks ${target})
endfunction()

# dist_add_gpu_benchmark_run(<test> <target> <GPUs> <argument of dist_add_table_check>...)
function(dist_add_gpu_benchmark_run test target gpus)
  dist_add_table_check(${test} ${target} ${ARGN})
  set_tests_properties(${test} PROPERTIES ENVIRONMENT "DIST_FAKE_CUDA=${gpus};DIST_WARNINGS=0")
endfunction()

# dist_add_gpu_benchmark(<name> <optimisation>): sets `target` to its program on fake GPUs, or to nothing if that is
# impossible.
function(dist_add_gpu_benchmark name optimisation)
  set(target "" PARENT_SCOPE)
  set(source "${PROJECT_SOURCE_DIR}/benchmarks/gpus/${name}.cpp")
  dist_requirements("${source}")
  if(dist_off)
    return()
  elseif(dist_missing)
    dist_add_skipped(benchmarks.${name}.gpus "the component ${dist_missing} was not found")
    return()
  endif()
  if(DIST_GPU_PROGRAMS)
    dist_add_gpu_benchmark_program(${name})
  endif()
  set(program gpu_bench_${name})
  add_executable(${program} "${source}")
  dist_test_settings(${program} ${optimisation} ${dist_libraries})
  add_dependencies(gpu_tests ${program})
  set_property(GLOBAL APPEND PROPERTY dist_gpu_benchmarks "${source}")
  add_test(NAME benchmarks.${name}.gpus.help COMMAND ${program} --help)
  add_test(NAME benchmarks.${name}.gpus.unknown_argument COMMAND ${program} --no-such-option)
  set_tests_properties(benchmarks.${name}.gpus.unknown_argument PROPERTIES WILL_FAIL TRUE)
  set_tests_properties(benchmarks.${name}.gpus.help benchmarks.${name}.gpus.unknown_argument PROPERTIES LABELS gpus)
  set(target ${program} PARENT_SCOPE)
endfunction()

set(seconds -s 0.001)
set(column " +[0-9.]+")
set(row "^ +4 +1 +float +sum${column}${column}${column} +0" "^ +1024 +256 +float +sum${column}${column}${column} +0"
        "^ +4096 +1024 +float +sum${column}${column}${column} +0")
set(timed " +[0-9.]+ us( +[0-9.]+)+$")
set(ratio " +[0-9.]+ x( +[0-9.]+)+")

dist_add_gpu_benchmark(collectives -O0)
foreach(policy IN ITEMS DirectAllReduce ReductionToOneDevice HierarchicalCopyAllReduce)
  string(REGEX REPLACE "([a-z])([A-Z])" "\\1_\\2" test ${policy})
  string(TOLOWER ${test} test)
  dist_add_gpu_benchmark_run(benchmarks.collectives.gpus.${test} ${target} "2 lazy"
    ROWS "^# Mirrored<${policy}, Cuda>: 4 replicas on /gpu:0 /gpu:1, in place, 9 calls in a row, 4 ranks" ${row}
    ARGUMENTS -p ${policy} -r 4 -b 4 -e 4096 ${seconds})
endforeach()
dist_add_gpu_benchmark_run(benchmarks.collectives.gpus.max ${target} "1 lazy"
  ROWS "^ +4096 +512 +double +max${column}${column}${column} +0" ARGUMENTS -t double -o max -b 4096 -e 4096 ${seconds})
dist_add_gpu_benchmark_run(benchmarks.collectives.gpus.none ${target} "0 eager" STATUS 1 ROWS "There is no GPU|no GPU")
dist_add_gpu_benchmark_run(benchmarks.collectives.gpus.unknown_policy ${target} "1 lazy" STATUS 2
  ROWS "^Unknown policy 'RingAllReduce'" ARGUMENTS -p RingAllReduce)

dist_add_gpu_benchmark(nccl_collectives -O0)
if(target)
  dist_add_gpu_benchmark_run(benchmarks.nccl_collectives.gpus ${target} "2 lazy"
    ROWS "^# Mirrored<NcclAllReduce, Cuda>: 2 replicas on /gpu:0 /gpu:1, in place, 19 calls in a row, 2 ranks" ${row}
    ARGUMENTS -b 4 -e 4096 ${seconds})
  dist_add_gpu_benchmark_run(benchmarks.nccl_collectives.gpus.shared ${target} "1 lazy" STATUS 1 ROWS "DirectAllReduce"
    ARGUMENTS -r 2)
endif()

dist_add_gpu_benchmark(updates -O0)
dist_add_gpu_benchmark_run(benchmarks.updates.gpus ${target} "1 lazy"
  ROWS "^Adam, 1024 parameters, 2 replicas on one GPU" "^Adam, 1024 parameters, 4 replicas on one GPU"
       "^  all-reduce, then Adam on every replica${timed}" "^  reduced and applied by one kernel${timed}"
       "^  copy of 9 x 4 B per parameter${timed}" "^  copy of 13 x 4 B per parameter${timed}"
       "^  one kernel over two passes .goal 1.8.${ratio}" "^  one kernel over two passes .goal 2.3.${ratio}"
       "^  one kernel: share of the copy bandwidth .goal 0.85.${ratio}"
       "^A step of 2 kernels, 1024 parameters, 1 replica on one GPU" "^A step of 4 kernels" "^  launched kernel by kernel${timed}" "^  captured, one launch${timed}"
       "^  captured over kernel by kernel${ratio}" "^  graph instantiations for all captured steps: 1$"
  ARGUMENTS 1 1)
dist_add_gpu_benchmark_run(benchmarks.updates.gpus.several ${target} "2 lazy" STATUS 1 ROWS "CUDA_VISIBLE_DEVICES")

dist_add_gpu_benchmark(cnn_step -O1)  # it computes so much
if(target)
  set(rate " +[0-9.e+]+ images/s( +[0-9.e+]+)+$")
  dist_add_gpu_benchmark_run(benchmarks.cnn_step.gpus ${target} "1 lazy"
    ROWS "^CNN training step, SGD, one GPU, batch 2" "^  float${rate}" "^  float, each step a graph${rate}" "^  products of BFloat16 factors${rate}"
         "^  a graph over kernel by kernel${ratio}" "^  BFloat16 over float${ratio}"
    ARGUMENTS 1 2 1)
  dist_add_gpu_benchmark_run(benchmarks.cnn_step.gpus.only ${target} "1 lazy"
    ROWS "^{.contender.: .float., .images_per_second.: [0-9.e+]+, .min.: [0-9.e+]+, .max.: [0-9.e+]+}$"
    ARGUMENTS --only float 1 2 1)
  dist_add_gpu_benchmark_run(benchmarks.cnn_step.gpus.unknown_contender ${target} "1 lazy" STATUS 2
    ROWS "^Unknown contender. Available: float graph bfloat16$" ARGUMENTS --only double)
endif()
