#pragma once
// Files with a JSON object in each line.

#include <cstddef>
#include <functional>
#include <string>
#include <xgrad/io/json.hpp>

namespace runs {

/// A line that is an object, or null for one that is not, or is longer than `longest` bytes.  A
/// last line without its newline that is not JSON is not passed on unless it is longer: a run may
/// be writing it.  NaN and Infinity, which JSON does not have and Python writes, are read as null.
/// Blank lines are counted and passed over.
using Line = std::function<void(std::size_t number, const xgrad::io::Json& row)>;
/// Throws FileError for what is no file that can be read.
void for_each_line(const std::string& path, std::size_t longest, const Line& f);

/// The object in a small file, such as config.json; null if there is none that can be read.
xgrad::io::Json read_object(const std::string& path);

}  // namespace runs
