# Embeds files in a program: writes a C file with their bytes and a table to find them by name.
#
#   bj_embed(OUT.c FILE...)   writes OUT.c again whenever one of the files changes
#
# OUT.c defines cli_embedded_files (cli/embedded.h). The entries are in the given order and have the file's
# name without its folder. A zero byte follows the last byte, so texts are terminated. The same files give
# the same bytes. This file runs as a script at build time.

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED EMBED_OUT)
    set(text "/* Made by cmake/Embed.cmake. */\n#include \"embedded.h\"\n\n")
    set(table "")
    set(index 0)
    string(REPLACE "|" ";" EMBED_FILES "${EMBED_FILES}")
    foreach(file IN LISTS EMBED_FILES)
        cmake_path(GET file FILENAME name)
        file(SIZE ${file} size)
        file(READ ${file} bytes HEX)
        # CMake's regular expressions have no repetition counts. Two digits per byte, 16 bytes per line.
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
        string(REPEAT "0x..," 16 line)
        string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
        string(APPEND text "static const unsigned char file_${index}[] = {\n${bytes}0};\n\n")
        string(APPEND table "    {\"${name}\", (const char *)file_${index}, ${size}},\n")
        math(EXPR index "${index} + 1")
    endforeach()
    string(APPEND text "const cli_embedded cli_embedded_files[] = {\n${table}    {0, 0, 0}};\n")
    file(WRITE ${EMBED_OUT} "${text}")
    return()
endif()

set(BJ_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(bj_embed out)
    list(JOIN ARGN "|" files) # joined, because CMake would split a list in a command argument
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} "-DEMBED_OUT=${out}" "-DEMBED_FILES=${files}" -P ${BJ_EMBED_SCRIPT}
        DEPENDS ${ARGN} ${BJ_EMBED_SCRIPT} VERBATIM)
endfunction()
