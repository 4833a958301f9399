# Finds every test by its folder and name, so tests do not have to be listed.
#
#   tests/<area>/test_<name>.c    program, linked with the static library    <area>.<name>
#   tests/cli/<name>.sh           script that drives the CLI                 cli.<name>
#   tests/<area>/peer_<name>.py   comparison with a Python peer              <area>.peer_<name>
#   tests/repo/<name>.sh          checks of the source tree                  repo.<name>
#   tests/install/run.sh          installs, then builds with the result      install
#
# Programs run in the repository root, scripts in an empty scratch folder. The variable TEST_<NAME>
# contains the path of the program test_<name>.c for scripts. Exit code 77 means skipped.
# Labels: the area. `slow` tests are left out of the sanitizer half of `make test`. `long` tests are
# skipped unless BJ_LONG=1 is set, which `make test-long` does.

# Tests that take too long in a sanitizer build, by ctest name. `make test-asan` and `make test-tsan`
# still run them.
set(slow_tests cli.bench cli.benchmark cli.campaign cli.demo cli.report_browser cli.train_fresh
    cli.train_kill)
# Tests that train for minutes, by ctest name.
set(long_tests cli.demo_record cli.torture)

set(test_environment
    BJEPA=$<TARGET_FILE:bjepa>
    BJ_ROOT=${PROJECT_SOURCE_DIR}
    BJ_BUILD=${PROJECT_BINARY_DIR}
    BJ_SANITIZE=${BJ_SANITIZE}
    CC=${CMAKE_C_COMPILER}
    # Tests check that a failed allocation returns NULL.
    ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=allocator_may_return_null=1:halt_on_error=1:second_deadlock_stack=1)

# The thread sanitizer of gcc 12 cannot place its shadow memory if the kernel randomizes addresses
# over a large range, so the tests run with address randomization disabled.
set(launcher "")
if(BJ_SANITIZE MATCHES "thread")
    execute_process(COMMAND setarch -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    if(result EQUAL 0)
        set(launcher setarch -R)
    endif()
endif()

function(bj_set_test_properties name area)
    set(labels ${area})
    set(timeout 900)
    if(name IN_LIST slow_tests)
        list(APPEND labels slow)
    endif()
    if(name IN_LIST long_tests)
        list(APPEND labels long)
        set(timeout 7200)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" ENVIRONMENT "${test_environment}"
        SKIP_RETURN_CODE 77 TIMEOUT ${timeout})
endfunction()

function(bj_add_script name area script)
    add_test(NAME ${name} COMMAND ${launcher} bash ${PROJECT_SOURCE_DIR}/tests/support/run_script.sh
        ${script} ${PROJECT_BINARY_DIR}/scratch/${name})
    bj_set_test_properties(${name} ${area})
endfunction()

set(test_options $<$<CONFIG:Release>:-O2>) # only code that is timed needs -O3

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
if(support_sources)
    add_library(test_support STATIC ${support_sources})
    target_include_directories(test_support PRIVATE src tests tests/support)
    target_include_directories(test_support SYSTEM PRIVATE third_party/yyjson)
    target_compile_options(test_support PRIVATE ${BJ_WARNINGS} ${test_options})
    target_link_libraries(test_support PUBLIC branchjepa_static m)
endif()

add_library(cli_parts STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:cli_objects>)
set_target_properties(cli_parts PROPERTIES LINKER_LANGUAGE C)

file(GLOB test_programs CONFIGURE_DEPENDS tests/*/test_*.c)
foreach(source ${test_programs})
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME area)
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "^test_" "" name ${stem})
    set(target test_${area}_${name})
    add_executable(${target} ${source})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
    target_include_directories(${target} PRIVATE src tests tests/support)
    target_include_directories(${target} SYSTEM PRIVATE third_party/yyjson)
    target_compile_options(${target} PRIVATE ${BJ_WARNINGS} ${test_options})
    target_link_libraries(${target} PRIVATE $<TARGET_NAME_IF_EXISTS:test_support>
        branchjepa_static Threads::Threads m)
    if(area STREQUAL "cli") # links the parts of the CLI that the program uses, without its main
        target_link_libraries(${target} PRIVATE cli_parts branchjepa_static)
        target_include_directories(${target} PRIVATE cli)
    endif()
    add_test(NAME ${area}.${name} COMMAND ${launcher} $<TARGET_FILE:${target}>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    bj_set_test_properties(${area}.${name} ${area})
    string(TOUPPER ${stem} variable)
    list(APPEND script_environment ${variable}=$<TARGET_FILE:${target}>)
endforeach()
list(APPEND test_environment ${script_environment})

file(GLOB cli_scripts CONFIGURE_DEPENDS tests/cli/*.sh)
foreach(script ${cli_scripts})
    cmake_path(GET script STEM name)
    bj_add_script(cli.${name} cli ${script})
endforeach()

# The remaining tests check the source tree or the installed files. Running them with instrumented
# code would test nothing more.
if(NOT BJ_SANITIZE AND NOT BJ_COVERAGE)
    file(GLOB peer_scripts CONFIGURE_DEPENDS tests/*/peer_*.py)
    foreach(script ${peer_scripts})
        cmake_path(GET script PARENT_PATH folder)
        cmake_path(GET folder FILENAME area)
        cmake_path(GET script STEM name)
        bj_add_script(${area}.${name} peer ${script})
    endforeach()

    file(GLOB repo_scripts CONFIGURE_DEPENDS tests/repo/*.sh)
    foreach(script ${repo_scripts})
        cmake_path(GET script STEM name)
        bj_add_script(repo.${name} repo ${script})
    endforeach()

    bj_add_script(install install ${PROJECT_SOURCE_DIR}/tests/install/run.sh)

    # Links the CLI with the shared library, so only exported symbols are available, and its own yyjson.
    add_executable(bjepa_shared $<TARGET_OBJECTS:cli_objects> ${vendored_sources})
    set_target_properties(bjepa_shared PROPERTIES
        LINKER_LANGUAGE C RUNTIME_OUTPUT_DIRECTORY tests)
    target_link_libraries(bjepa_shared PRIVATE branchjepa m)
    add_test(NAME repo.cli_needs_only_the_api COMMAND bjepa_shared version)
    bj_set_test_properties(repo.cli_needs_only_the_api repo)
endif()
