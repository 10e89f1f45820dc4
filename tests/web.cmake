# Tests of the build for WebAssembly, under node (included by CMakeLists.txt).

# Tests of the core that cannot pass there, and why.  All others must.
set(not_under_node
  # They start threads, or ask for several, of which there is one.
  "[threads]"
  [["a large block that one thread frees is there for another"]]
  [["a thread that frees another's blocks does not accumulate them"]]
  [["BLAS is called by several threads at a time"]]
  [["a formula that captures no Tensor of its inputs is not refused"]]
  [["a graph built on two threads"]]
  [["threads call grad() on shared leaves and a shared graph"]]
  [["the mode belongs to its thread"]]
  [["two threads cut batches over the same leaves at once"]]
  [["runs within runs*"]]
  [["random graphs: threads"]] [["docs/pytorch_ops.md - Random numbers"]]
  [["a step that fails for want of memory has changed nothing"]]
  [["clipping that fails for want of memory has changed nothing"]]
  [["faults: a training step that fails for want of memory has changed no parameter"]]
  [["a batch is cut in spite of dropout*"]]  # It forks.
  # They make pipes, of which that system has none.
  [["safetensors: links*"]]
  [["safetensors: a path that is not a file"]]
  # They set the size of the stack.
  [["long chains of*"]])
list(JOIN not_under_node "~" not_under_node)

set_source_files_properties(autograd/ends_of_ranges_test.cpp PROPERTIES  # Clang 19 crashes where it folds powers of long double
                            COMPILE_OPTIONS -O0 SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
xgrad_for_node(xgrad_core_tests)
target_link_options(xgrad_core_tests PRIVATE -O0)  # the optimiser would take minutes for the tests' code
add_test(NAME core_tests COMMAND xgrad_core_tests "~${not_under_node}")
set_tests_properties(core_tests PROPERTIES ${xgrad_some_test})

# The first 50 losses of the demonstration, which is as large as `nano`, are PyTorch's to 1e-5.
add_test(NAME demonstration_losses
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/examples/char_transformer.py losses ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:char_transformer>)
