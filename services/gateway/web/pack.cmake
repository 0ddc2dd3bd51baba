# SPDX-License-Identifier: Apache-2.0
# Makes web_table.c of the lists LISTS in the folder MADE (web.cmake): a row for each file, its bytes by .incbin.
set(data "")
set(table "")
set(number 0)

# SYMBOL FILE: the bytes; a variable SYMBOL_str with the initialiser of a Str.
function(put symbol file)
    file(SIZE ${file} size)
    string(APPEND data "__asm__(\".section .rodata\\n.global ${symbol}\\n${symbol}:\\n.incbin \\\"${file}\\\"\\n.byte 0\\n.text\\n\");\nextern const char ${symbol}[];\n")
    set(data "${data}" PARENT_SCOPE)
    set(${symbol}_str "{${symbol}, ${size}}" PARENT_SCOPE)
endfunction()

foreach(list ${LISTS})
    file(STRINGS ${list} rows)
    foreach(row ${rows})
        string(REPLACE ";" "\\;" row "${row}")
        string(REPLACE "|" ";" row "${row}")
        list(GET row 0 path)
        list(GET row 1 file)
        list(GET row 2 type)
        list(GET row 3 kind)
        file(SHA256 ${file} hash)
        set(gzip ${MADE}/${number}.gz)
        execute_process(COMMAND ${GZIP} -9nc ${file} OUTPUT_FILE ${gzip} COMMAND_ERROR_IS_FATAL ANY)
        put(web_file_${number} ${file})
        put(web_gzip_${number} ${gzip})
        set(web_brotli_${number}_str "{0}")
        if(EXISTS ${file}.br)
            put(web_brotli_${number} ${file}.br)
        endif()
        string(APPEND table "    {\"${path}\", \"${type}\", ${kind}, \"${hash}\",\n"
            "     ${web_file_${number}_str}, ${web_gzip_${number}_str}, ${web_brotli_${number}_str}},\n")
        math(EXPR number "${number} + 1")
    endforeach()
endforeach()

file(WRITE ${MADE}/web_table.c "// Made by services/gateway/web/pack.cmake.
#include \"services/gateway/web/web_files.h\"

${data}
const WebFile web_table[] = {
${table}};
const size_t web_table_count = ${number};
")
