# Compiler flags of every target.
#
#   - Warnings are errors, in the library, the CLI and the tests alike.
#   - Contraction is off, so that portable code computes what it says on every machine; the vector
#     kernels switch it on for themselves. There is no -ffast-math anywhere.
#   - Symbols are hidden unless the header marks them BJ_API.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")
# Assertions stay on in these two. -O2 makes the kernels with sanitizers five times slower to
# compile and a quarter faster to run: not worth it.
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_COVERAGE "-O1 -g")

set(BJ_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wvla -Werror)
if(BJ_SANITIZE OR BJ_COVERAGE)
    # These follow the optimizer: at -O1 and with instrumentation they see dead code as live. The
    # release build judges them.
    list(APPEND BJ_WARNINGS -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
        -Wno-format-truncation -Wno-format-overflow -Wno-restrict)
endif()

# Nothing here reads errno after a math function; without it square roots vectorize.
add_compile_options(-ffp-contract=off -fno-math-errno)
if(BJ_SANITIZE)
    add_compile_options(-fsanitize=${BJ_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${BJ_SANITIZE})
endif()
if(BJ_COVERAGE)
    # Worker threads share the counters.
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()

# Describes compiler and flags to the library (src/core/build.c), because a run may only be resumed by
# a build that computes the same bits. Warnings, definitions and debug information change no results.
function(bj_describe_build)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    get_directory_property(flags COMPILE_OPTIONS)
    separate_arguments(given UNIX_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}")
    list(PREPEND flags ${given})
    list(FILTER flags EXCLUDE REGEX "^(-W|-D|-g|-I|-fno-omit-frame-pointer|-fno-sanitize-recover)")
    list(JOIN flags " " flags)
    set_source_files_properties(src/core/build.c PROPERTIES COMPILE_DEFINITIONS
        "BJ_BUILD=\"${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${flags}\"")
endfunction()

# One kernel source per instruction set; elsewhere those files compile to nothing by their own #if.
function(bj_kernel_flags)
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
        return()
    endif()
    set_source_files_properties(src/kernels/kernels_avx2.c PROPERTIES COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-ffp-contract=fast")
    set_source_files_properties(src/kernels/kernels_avx512.c PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mfma;-ffp-contract=fast;-mprefer-vector-width=512")
endfunction()
