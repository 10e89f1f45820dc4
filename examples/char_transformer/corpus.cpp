#include "corpus.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <sstream>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/generator.hpp>

// A text grows by weighted choices.  What a choice leads to begins with some literal, its opening;
// no opening of a choice begins another, so the text tells what was chosen.  If m(k) is the
// probability, summed over the openings, that the next k characters are those of the one taken,
// character k has p = m(k + 1) / m(k).
//
//   rule: a | 3 b | ...   its alternatives; a leading number is a weight, 1 if absent; a line that
//                         begins with two blanks continues the one above
//   ~ and ^               a newline, and a blank that is kept
//   <rule>, <s=rule>      what the rule writes; slot s, a letter, remembers it
//   <s=rule !t>           the same, but not the alternative that slot t holds
//   <s>, <s.rule>         what slot s wrote; that alternative of another rule
//   <s=t>                 slot s holds what t does (not where an alternative of several begins)

namespace corpus {
namespace {

struct Slot {
  std::size_t chosen = 0;
  std::string written = {};
};
using Slots = std::map<char, Slot>;
using Weights = std::vector<std::uint32_t>;

struct Reference {  // what stands between < and >
  char slot = 0;
  bool known = false;  // <s> or <s.rule>
  std::string rule = {}, other = {};
};

/// Takes the reference that a cell begins with off it.
Reference take_reference(std::string_view& cell) {
  std::string text(cell.substr(1, cell.find('>') - 1));
  cell.remove_prefix(text.size() + 2);
  Reference reference{.known = text.size() == 1 || text[1] == '.'};
  if (reference.known || text[1] == '=')
    reference.slot = text[0], text.erase(0, 2);
  std::istringstream(text) >> reference.rule >> reference.other;
  return reference;
}

class Writer {
 public:
  Writer(std::string grammar, std::size_t characters, std::uint64_t seed)
      : characters_(characters), generator_(seed) {
    for (std::size_t at = 0; (at = grammar.find("\n  ")) != grammar.npos;)
      grammar.erase(at, 3);
    std::istringstream lines(grammar);
    for (std::string line, name, cell; std::getline(lines, line);) {
      std::istringstream cells(line);
      std::getline(cells, name, ':');
      while (std::getline(cells, cell, '|')) {
        char* text = nullptr;
        const auto weight = static_cast<std::uint32_t>(std::strtoul(cell.c_str(), &text, 10));
        cell.erase(0, cell.find_first_not_of(' ', static_cast<std::size_t>(text - cell.data())));
        cell.erase(cell.find_last_not_of(' ') + 1);
        std::replace(cell.begin(), cell.end(), '~', '\n');
        std::replace(cell.begin(), cell.end(), '^', ' ');
        weights_[name].push_back(std::max(weight, 1u));
        cells_[name].push_back(cell);
      }
    }
  }

  Corpus write(const std::string& start) {
    for (Slots slots; out_.text.size() < characters_; slots.clear())
      write(start, slots);
    out_.text.resize(characters_);
    out_.nll.resize(characters_);
    return out_;
  }

 private:
  void write(std::string_view cell, Slots& slots) {
    while (!cell.empty() && out_.text.size() < characters_) {
      const std::string_view here = cell;
      if (here[0] != '<') {
        cell.remove_prefix(std::min(here.find('<'), here.size()));
        append(here.substr(0, here.size() - cell.size()));
      } else if (const Reference reference = take_reference(cell); reference.known) {
        write(known(reference, slots), slots);
      } else if (reference.rule.size() == 1) {
        slots[reference.slot] = slots.at(reference.rule[0]);
      } else {
        const std::vector<std::string>& cells = cells_.at(reference.rule);
        if (choice_.empty() && cells.size() > 1)
          choice_ = here, choice_slots_ = slots;
        const std::size_t begin = out_.text.size(), chosen = choose(weights(reference, slots));
        write(cells[chosen], slots);
        slots[reference.slot] = {chosen, out_.text.substr(begin)};
      }
    }
  }

  std::string known(const Reference& reference, const Slots& slots) const {
    const Slot& slot = slots.at(reference.slot);
    return reference.rule.empty() ? slot.written : cells_.at(reference.rule).at(slot.chosen);
  }

  Weights weights(const Reference& reference, const Slots& slots) const {
    Weights weights = weights_.at(reference.rule);
    if (!reference.other.empty())
      weights.at(slots.at(reference.other.at(1)).chosen) = 0;
    return weights;
  }

  std::size_t choose(const Weights& weights) {
    const std::uint32_t total = std::accumulate(weights.begin(), weights.end(), 0u);
    std::uint32_t bits = generator_.random();
    while (bits > ~((0u - total) % total))  // the 2^32 mod total largest would favour the first
      bits = generator_.random();
    std::size_t chosen = 0;
    for (bits %= total; bits >= weights[chosen]; ++chosen)
      bits -= weights[chosen];
    return chosen;
  }

  /// Writes a literal.  If a choice led to it, it competes with that choice's other openings.
  void append(std::string_view literal) {
    opening_ = literal;
    alike_ = 0;
    mass_.assign(literal.size() + 1, 0);
    add_openings(choice_.empty() ? literal : choice_, choice_slots_, 1);
    xgrad::check<xgrad::ValueError>(alike_ == 1,
                                    "grammar: '{}' does not tell what was chosen of {}", literal,
                                    choice_.substr(0, choice_.find('>') + 1));
    choice_ = {};
    for (std::size_t k = literal.size(); k-- > 1;)
      mass_[k] += mass_[k + 1];
    mass_[0] = 1;
    for (std::size_t k = 0; k < literal.size(); ++k)
      out_.nll.push_back(std::max(0.0, std::log(mass_[k] / mass_[k + 1])));
    out_.text += literal;
  }

  void add_openings(std::string_view cell, const Slots& slots, double mass) {
    if (cell[0] != '<') {
      cell = cell.substr(0, cell.find('<'));
      const auto end = std::mismatch(cell.begin(), cell.end(), opening_.begin(), opening_.end());
      mass_[static_cast<std::size_t>(end.first - cell.begin())] += mass;
      alike_ += end.first == cell.end() || end.second == opening_.end();
      return;
    }
    const Reference reference = take_reference(cell);
    if (reference.known)
      return add_openings(known(reference, slots), slots, mass);
    const Weights all = weights(reference, slots);
    const double total = std::accumulate(all.begin(), all.end(), 0.0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string& next = cells_.at(reference.rule)[i];
      if (all[i] > 0 && (next[0] == '<' || next[0] == opening_[0]))  // a matter of speed
        add_openings(next, slots, mass / total * all[i]);
    }
  }

  std::size_t characters_;
  xgrad::Generator generator_;
  std::map<std::string, Weights> weights_;                 // of each rule's alternatives
  std::map<std::string, std::vector<std::string>> cells_;  // which these are
  Corpus out_;
  std::string_view choice_, opening_;  // a choice not yet seen in the text; what will show it
  Slots choice_slots_;
  std::vector<double> mass_;  // of the openings that share k characters with it
  int alike_ = 0;             // openings that it begins with or that begin with it, itself included
};

}  // namespace

Corpus grow(const std::string& grammar, std::size_t characters, std::uint64_t seed) {
  return Writer(grammar, characters, seed).write("<" + grammar.substr(0, grammar.find(':')) + ">");
}

// All vowels of a name are like its first, a, o and u or e and i: a model has to look back.
Corpus names_corpus(std::size_t characters, std::uint64_t seed) {
  return grow(R"(name: 4 <dark><dark_rest> | 3 <bright><bright_rest>
dark: 2 a | 2 bo | do | fa | 2 ga | gru | 2 ha | jo | ka | 2 lo | 3 ma | no | o | pa | 2 ro | sa | 2 to | u | wa | za
dark_rest: 6 <dark_mid><dark_last> | <dark_shut>
dark_last: 2 <dark_mid><dark_end> | 5 <dark_end>
dark_mid: 2 ba | bo | da | 2 do | ga | 3 la | lo | ma | 2 mo | nda | no | 3 ra | 2 ro | rlo | sso | ta | tto | va
dark_end: 3 ~ | 4 <dark_shut>
dark_shut: 3 n~ | 2 r~ | ck~ | ld~ | m~ | rd~ | 2 s~ | sk~ | x~
bright: 2 be | bri | 2 de | 3 e | fe | gi | 2 he | 2 i | ji | ke | 2 li | 3 me | ni | pe | 2 ri | se | ti | 2 wi | ze
bright_rest: 6 <bright_mid><bright_last> | <bright_shut>
bright_last: 2 <bright_mid><bright_end> | 5 <bright_end>
bright_mid: bi | 2 de | 3 le | 2 li | mi | nde | 2 ne | ni | re | 3 ri | rli | sse | 2 te | tti | vi
bright_end: 3 ~ | 4 <bright_shut>
bright_shut: 2 l~ | lm~ | 3 n~ | nk~ | r~ | 2 s~ | t~ | th~)",
              characters, seed);
}

Corpus scenes_corpus(std::size_t characters, std::uint64_t seed) {
  return grow(
      R"(scene: 3 The loss of the <loss> | 3 The trial of <trial> | 2 Bargains for <market> | 2 The ghost of the <ghost>
  | 3 Good <greeting>~<setting>(Enter <x=person>, <x.habit>.)~(Enter <y=person !x>, <y.habit>.)~<banter>
setting: <w=place>, in <adj> <h=weather>.~
loss: <a=np>~<setting>(Enter <x=person>, looking <spot>.)~<x>: <x.oath>! My <a> <went>!~(Enter <y=person !x>, <doing>.)~
  <y>: I suspect a <adj> <relative>. What is that <spot>?~<x>: My <a>! It was <spot>!~<banter>
trial: <x=person>~<setting>(The judge is <y=person !x>, <y.habit>.)~<y>: <x>, you stand accused of <c=doing>.~
  <x>: Not guilty, I was <doing>.~<y>: For <c>, you shall <do_to> <obj>.~<banter>
market: <nouns>~<setting>(<x=person> has a stall. <y=person !x> has <price>.)~<x>: Buy my <a=np>!~
  <y>: For a <a>? <y.oath>!~<x>: Only <n=number> buttons.~<y>: You said <n.next>!~<x>: And now <n>.~<banter>
ghost: <o=noun>~<setting>(<x=person> holds a <noun>. <y=person !x> holds <x>.)~A Voice: Who <did_to> my <o>?~
  <x>: <x.oath>! Who are you?~A Voice: I am your late <z=relative>.~<y>: Does your <z> want a <o>? It is <spot>.~
  <banter>
greeting: morning | evening | neighbours | grief | luck | manners
banter: <line><turn>
turn: 9 <line><turn> | 2 (<event>
event: 2 <x> <does>.)~<line><turn> | 2 Curtain.)~~ | Exeunt, <doing>.)~~ | The goose wins again.)~~
line: <x><how><speech><tail><z=x><x=y><y=z>
how: 5 :^ | ^(<manner>):^
manner: softly | loudly | sadly | grandly | kindly | rudely | <x.habit> | like a <animal>
speech: 9 The <adj> <thing_or_animal> <vp> | 6 My <adj> <thing_or_animal> <vp> | 6 Your <np> <vp> | 8 A <np> <vp>
  | 9 I <i_say> | 3 You <vp> | 3 We <vp> | 2 Never <do_to> <obj> | 2 Nobody <vp> | There is a <np> <spot>
  | Have you seen my <v=np>?~<y>: Your <v> is <spot> | 2 If <clause>, I shall <do_to> <obj> | Why is the <noun> <adj>?~
  <y>: Because <clause> | 2 Look, a <np> <doing> | 2 No, <clause> | 2 Yes, but <clause> | How many <v=nouns> have you?~
  <y>: I had <n=number>, but now I have <n.next> <v> | 3 Every <np> <vp>
i_say: 8 <did_to> <obj> | 2 <went> <how_so> | am the <x.trade> here | was a <np> once | must <do_to> <obj>
tail: 6 .~ | 2 !~ | , <address>.~ | . <x.oath>!~ | 8 ^<more>.~
more: 5 <link> <clause> | 3 <how_so>
address: <x.dear> | <y>
link: and | but | because | before | until | so | while | unless | since | though | when
clause: the <np> <vp> | your <np> <vp> | a <np> <vp> | I <vp> | you <vp> | we <vp> | nobody <vp>
np: 7 <adj> <thing_or_animal> | 2 <noun>
vp: 8 <did_to> <obj> | 2 <went> <how_so>
obj: 6 the <np> | 4 a <np> | 4 my <mine> | 4 your <np> | 2 <number> <nouns> | 2 some <food>
mine: <relative> | <x.ware> | 2 <adj> <noun>
person: Crumb | Wick | Pellow | Nettle | Bream | Doctor Quill | Kit | Mayor Button | Reed | Barnaby | Zack
trade: baker | candlemaker | ferryman | herbalist | sailor | doctor | blacksmith | mayor | fiddler | goat | judge
habit: dusting flour | trimming a wick | wringing a hat | sniffing the air | saluting a pot | taking a pulse
  | hitting softly | polishing a chain | plucking a string | chewing a curtain | asking for quiet
oath: Butter and thunder | Wax and wane | Mind the damp | Thistle and thyme | Shiver my biscuits | Most irregular
  | Hot iron, cold tea | Let it be minuted | From the top | Meh | Justice
dear: dumpling | spark | passenger | sprout | shipmate | patient | old nail | voter | maestro | friend | your honour
ware: loaf | night light | boat | hedge salad | anchor | cough drop | box of nails | bylaw | violin | left boot | gavel
place: On the <adj> bridge | In the <adj> bakery | Behind the <adj> mill | Under the <adj> clock tower
weather: fog | rain | snow | wind | sunshine | thunder | hail | frost | gloom | mist | drizzle | moonlight
adj: brass | wooden | damp | crooked | polite | velvet | haunted | borrowed | purple | rusty | noble | grumpy | zany
  | wobbly | sleepy | hollow | patient | tiny | gigantic | golden | paper | hairy | spotted | ripe | cold | warm | loud
  | lazy | proud | gentle | green | yellow | fat | quick | slow | grey | black
noun: spoon | teapot | ladder | lantern | bucket | turnip | trumpet | whistle | button | kettle | hat | boot | glove
  | pillow | pudding | pie | cheese | cabbage | biscuit | pancake | broom | barrel | basket | bell | fiddle | candle
  | mirror | map | letter | riddle | shadow | puddle | crown | balloon
nouns: spoons | turnips | trumpets | kettles | hats | boots | pies | cheeses | sausages | bells | candles | wigs
thing_or_animal: 2 <noun> | <animal>
animal: goose | goat | badger | heron | pigeon | donkey | toad | cow | sheep | ferret | rabbit | walrus | fox | zebra
did_to: insulted | borrowed | painted | married | buried | tickled | kissed | forgot | admired | blamed | chased
  | carried | sold | stole | fried | lost | mended | ate | praised
do_to: insult | borrow | paint | marry | bury | kiss | admire | blame | chase | carry | sell | steal | fry | mend | eat
went: sneezed | fainted | sulked | melted | leaked | blinked | shrank | grew | snored | blushed | howled | wobbled
how_so: at noon | at night | in church | by mistake | on purpose | in June | for money | like a <noun>
food: porridge | soup | gravy | plum jam | toast | custard | stew | fudge | honey | bacon | curry
relative: grandmother | uncle | cousin | husband | twin | nurse | aunt | wife
number: two | three | four | five | six | seven | eight | nine | ten | eleven
next: three | four | five | six | seven | eight | nine | ten | eleven | twelve
price: 3 <number> <nouns> | half a <noun> | my <relative> | 2 a <np> | one song
does: sneezes | faints | dances with a <np> | drops a <np> | eats the <np> | licks the <np>
doing: sneezing | sulking | dancing | leaking | singing | snoring | waiting for <food> | asking for <nouns>
spot: in the <noun> | under the <noun> | behind the <noun> | up the chimney | near my <noun> | on the doctor's <noun>)",
      characters, seed);
}

}  // namespace corpus
