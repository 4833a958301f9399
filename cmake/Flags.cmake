# Compiler flags of every target.
#
#   - Warnings are errors in the library, the CLI and the tests.
#   - Contraction is off, so that portable code gives the same results on every machine. Only the vector
#     kernels enable it. -ffast-math is never used.
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
# Assertions are enabled in these two builds. With sanitizers, -O2 makes the kernels five times slower to
# compile and only a quarter faster to run, so -O1 is used.
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_COVERAGE "-O1 -g")

set(BJ_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wvla -Werror)
if(BJ_SANITIZE OR BJ_COVERAGE)
    # These warnings depend on the optimizer and report dead code at -O1 with instrumentation. The release
    # build enables them.
    list(APPEND BJ_WARNINGS -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
        -Wno-format-truncation -Wno-format-overflow -Wno-restrict)
endif()

# No code reads errno after a math function. Without errno, square roots can be vectorized.
add_compile_options(-ffp-contract=off -fno-math-errno)
if(BJ_SANITIZE)
    add_compile_options(-fsanitize=${BJ_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${BJ_SANITIZE})
endif()
if(BJ_COVERAGE)
    # Worker threads share the coverage counters.
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

# Sets the flags of the kernel sources, one per instruction set. On other processors these files are empty.
function(bj_kernel_flags)
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
        return()
    endif()
    set_source_files_properties(src/kernels/kernels_avx2.c PROPERTIES COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-ffp-contract=fast")
    set(avx512 "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mfma;-ffp-contract=fast;-mprefer-vector-width=512")
    set_source_files_properties(src/kernels/kernels_avx512.c PROPERTIES COMPILE_OPTIONS "${avx512}")
    set_source_files_properties(src/kernels/kernels_avx512bf16.c PROPERTIES COMPILE_OPTIONS
        "${avx512};-mavx512bf16")
endfunction()
