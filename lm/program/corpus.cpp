#include "corpus.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>
#include <xgrad/autograd/random.hpp>

// A grammar whose texts are grown by random choices, with the probability of each; ~ is a newline.
//   rule:a|3 b|...   alternatives, b three times as likely as a; lines with one name are joined
//   <rule>, <s=rule> a rule's text, which s= stores in slot s, a letter; <s> is the stored text

namespace corpus {
namespace {

Corpus grow(const std::string& grammar, std::size_t characters, std::uint64_t seed) {
  std::map<std::string, std::vector<std::string>> rules;
  std::istringstream lines(grammar);
  for (std::string line, rule, cell; std::getline(lines, line);) {
    std::istringstream cells(line);
    for (std::getline(cells, rule, ':'); std::getline(cells, cell, '|');) {
      const std::size_t weight = std::strtoul(cell.c_str(), nullptr, 10);
      rules[rule].insert(rules[rule].end(), std::max<std::size_t>(weight, 1),
                         weight > 0 ? cell.substr(cell.find(' ') + 1) : cell);
    }
  }
  xgrad::Generator generator(seed);
  std::map<char, std::string> slots;
  std::map<char, std::size_t> begins;  // by slot, the beginning of its text
  double chosen = 0;                   // -log p of the choices since the last character
  std::string left;                    // still to be expanded; ">s" ends the text of slot s
  Corpus corpus;
  while (corpus.text.size() < characters) {
    if (left.empty())
      left = "<" + grammar.substr(0, grammar.find(':')) + ">";
    const std::string symbol = left.substr(0, left[0] == '<' ? left.find('>') : left[0] == '>');
    const char first = left[symbol.size()];
    left.erase(0, symbol.size() + 1);
    if (symbol.size() == 1) {  // ">", and `first` is a slot
      slots[first] = corpus.text.substr(begins[first]);
    } else if (symbol.size() == 2) {
      left.insert(0, slots.at(symbol[1]));
    } else if (symbol.empty()) {
      corpus.text += first == '~' ? '\n' : first;
      corpus.nll.push_back(std::exchange(chosen, 0));
    } else {
      const bool remembers = symbol[2] == '=';
      const auto& all = rules.at(symbol.substr(remembers ? 3 : 1));
      const std::string& next = all[generator.random() % all.size()];
      chosen += std::log(static_cast<double>(all.size()) /
                         static_cast<double>(std::ranges::count(all, next)));
      if (remembers)
        begins[symbol[1]] = corpus.text.size();
      left.insert(0, remembers ? next + ">" + symbol[1] : next);
    }
  }
  return corpus;
}

}  // namespace

// All vowels of a name are of its first one's kind, a, o and u or e and i: a model must look back.
Corpus names_corpus(std::size_t characters, std::uint64_t seed) {
  return grow(R"(name:4 <dark><dark_rest>|3 <bright><bright_rest>
dark:2 a|2 bo|do|fa|2 ga|gru|2 ha|jo|ka|2 lo|3 ma|no|o|pa|2 ro|sa|2 to|u|wa|za
dark_rest:3 <dark_mid><dark_rest>|~|3 <dark_end>
dark_mid:2 ba|bo|da|2 do|ga|3 la|lo|ma|2 mo|nda|no|3 ra|2 ro|rlo|sso|ta|tto|va
dark_end:3 n~|2 r~|ck~|ld~|m~|rd~|2 s~|sk~|x~
bright:2 be|bri|2 de|3 e|fe|gi|2 he|2 i|ji|ke|2 li|3 me|ni|pe|2 ri|se|ti|2 wi|ze
bright_rest:3 <bright_mid><bright_rest>|~|3 <bright_end>
bright_mid:bi|2 de|3 le|2 li|mi|nde|2 ne|ni|re|3 ri|rli|sse|2 te|tti|vi
bright_end:2 l~|lm~|3 n~|nk~|r~|2 s~|t~|th~)",
              characters, seed);
}

Corpus scenes_corpus(std::size_t characters, std::uint64_t seed) {
  return grow(
      R"(scene:The <adj> <noun>~(Enter <x=person>, <doing>. Enter <y=guest>, <doing>.)~<line><rest>
rest:9 <line><rest>|2 (<y> <deed>.)~<line><rest>|Exeunt, <doing>.~~|The goose wins again.~~
line:<x><how> <speech>~|<y><how> <speech>~
how:5 :| (softly):| (loudly):| (like a <animal>):
speech:6 The <np> <deed>.|4 My <np> <deed>!|4 Your <np> <deed>.|4 A <np> <deed>.|6 I <deed>!
speech:2 Have you seen my <v=np>?~<y>: Your <v> is under the <noun>.|2 Why is the <w=noun> <adj>?~<y>: Because the <w> <deed>.
np:7 <adj> <noun>|3 <adj> <animal>|2 <noun>|<animal>
deed:8 <did> <thing>|2 <went> <how_so>
thing:6 the <np>|4 a <np>|4 my <np>|4 your <np>|2 some <food>
person:Grandmother|Crumb|Wick|Pellow|Nettle|Bream|Doctor Quill
guest:Mayor Button|Kit|Reed|Barnaby|Zack
adj:brass|wooden|damp|crooked|polite|velvet|haunted|borrowed|purple|rusty|noble|grumpy|zany|wobbly|sleepy|tiny|quick
noun:spoon|teapot|ladder|lantern|bucket|turnip|trumpet|whistle|kettle|boot|pillow|pudding|cheese|broom|fiddle|candle
animal:goose|goat|badger|heron|pigeon|donkey|toad|sheep|ferret|rabbit|walrus|fox|zebra
did:insulted|painted|married|buried|tickled|kissed|forgot|admired|chased|carried|sold|stole|fried|lost|mended|ate
went:sneezed|fainted|sulked|melted|leaked|blinked|shrank|grew|snored|howled
doing:sneezing|sulking|dancing|leaking|singing|snoring|waiting for <food>
how_so:at noon|at night|in church|by mistake|on purpose|in June|for money|like a <noun>
food:porridge|soup|gravy|plum jam|toast|custard|stew|fudge)",
      characters, seed);
}

}  // namespace corpus
