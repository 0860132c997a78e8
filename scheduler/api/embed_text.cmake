# Writes a text file as a C++ function:
#   cmake -DOUTPUT=F -DTEXT=F -DFUNCTION=NAME -DHEADER=H -P embed_text.cmake
#
# A raw string literal keeps the bytes as they are; its delimiter must not occur.
cmake_minimum_required(VERSION 3.25)

file(READ "${TEXT}" body)
string(FIND "${body}" ")text\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${TEXT} contains the literal's delimiter )text\"")
endif()
file(WRITE ${OUTPUT} "// Generated from ${TEXT} by scheduler/api/embed_text.cmake.
#include \"${HEADER}\"

namespace tranche {

std::string_view ${FUNCTION}() { return R\"text(${body})text\"; }

}  // namespace tranche
")
