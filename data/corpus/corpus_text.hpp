#pragma once
// The grammar of the embedded corpus, in parts.  Internal.  The notation is explained in
// grammar.hpp.

#include <string_view>

namespace xgrad::data {

extern const std::string_view corpus_people;  ///< who lives there, where, and in what weather
extern const std::string_view corpus_words;   ///< things, animals, manners
extern const std::string_view corpus_talk;    ///< what people say to each other
extern const std::string_view corpus_scenes;  ///< what happens

}  // namespace xgrad::data
