# cmake -DROOT=… -DSOURCES=… -DOUTPUT=… -P source_digests.cmake
# Writes OUTPUT, a C++ file with a digest of each file that SOURCES lists, together with all headers
# of the project that it includes, directly or not, except kernels/common/variant.hpp, which only
# registers: the first 12 hex digits of the SHA-256 of the lines "<SHA-256 of its code>  <path>" of
# these files, sorted by path. The code of a file is its text without comments, without white space,
# and without the members of a VariantInfo that only a reader sees (adds, builds_on, idea). OUTPUT.d
# tells the build on which files that depends.
cmake_minimum_required(VERSION 3.25)

# Lists `file` (relative to ROOT) and all files that it includes, each once.
function(include_closure file result)
  set(found "")
  set(waiting ${file})
  while(waiting)
    list(POP_FRONT waiting next)
    if(next IN_LIST found OR next STREQUAL "kernels/common/variant.hpp")
      continue()
    endif()
    if(NOT EXISTS ${ROOT}/${next})
      message(FATAL_ERROR "${file} includes ${next}, directly or not, and there is no such file")
    endif()
    list(APPEND found ${next})
    file(STRINGS ${ROOT}/${next} includes REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<kernels/)")
    foreach(include IN LISTS includes)
      if(NOT include MATCHES "[\"<](kernels/[^\">]+)[\">]")
        message(FATAL_ERROR
                "${next}: ${include}: expected a path from the project's root, as \"kernels/…\"")
      endif()
      list(APPEND waiting ${CMAKE_MATCH_1})
    endforeach()
  endwhile()
  list(SORT found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()

function(digest_of_code file result)
  file(READ ${ROOT}/${file} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "[ \t\n]+" "" text "${text}")
  string(REGEX REPLACE "[.](adds|builds_on)=(\"[^\"]*\")+,|[.]idea=[A-Za-z_:]+," "" text "${text}")
  string(SHA256 digest "${text}")
  set(${result} ${digest} PARENT_SCOPE)
endfunction()

file(STRINGS ${SOURCES} sources)
set(rows "")
set(read_files "")
foreach(source IN LISTS sources)
  include_closure(${source} files)
  list(APPEND read_files ${files})
  set(sums "")
  foreach(file IN LISTS files)
    if(NOT DEFINED sum_of_${file})
      digest_of_code(${file} sum_of_${file})
    endif()
    string(APPEND sums "${sum_of_${file}}  ${file}\n")
  endforeach()
  string(SHA256 digest "${sums}")
  string(SUBSTRING ${digest} 0 12 digest)
  string(APPEND rows "    {\"${source}\", \"${digest}\"},\n")
endforeach()

file(WRITE ${OUTPUT} "// Made by cmake/source_digests.cmake.
#include \"harness/verify/verified.hpp\"

namespace stepladder {

std::span<const SourceDigest> source_digests() {
  static const std::initializer_list<SourceDigest> all = {
${rows}  };
  return {all.begin(), all.size()};
}

}  // namespace stepladder
")

list(REMOVE_DUPLICATES read_files)
list(TRANSFORM read_files PREPEND ${ROOT}/)
list(TRANSFORM read_files REPLACE " " "\\\\ ")
string(REPLACE " " "\\ " output ${OUTPUT})
list(JOIN read_files " \\\n  " read_files)
file(WRITE ${OUTPUT}.d "${output}: ${read_files}\n")
