#include <xgrad/data/corpus/corpus.hpp>

namespace xgrad::text {

const Grammar& names_grammar() {
  // Invented given names, in the notation of grammar.hpp.  They have vowel harmony, as Finnish and
  // Turkish words do: all vowels of a name are those of its first syllable, a, o and u or e and i.
  // A model has to look back to know which.
  static const Grammar grammar(R"(
name: 4 <dark><dark_rest> | 3 <bright><bright_rest>

dark: 2 a | 2 bo | do | fa | 2 ga | gru | 2 ha | jo | ka | 2 lo | 3 ma | no | o | pa | 2 ro | sa | 2 to | u | wa | za
dark_rest: 6 <dark_mid><dark_last> | <dark_shut>
dark_last: 2 <dark_mid><dark_end> | 5 <dark_end>
dark_mid: 2 ba | bo | da | 2 do | ga | 3 la | lo | ma | 2 mo | nda | no | 3 ra | 2 ro | rlo | sso | ta | tto | va
dark_end: 3 \n | 4 <dark_shut>
dark_shut: 3 n\n | 2 r\n | ck\n | ld\n | m\n | rd\n | 2 s\n | sk\n | x\n

bright: 2 be | bri | 2 de | 3 e | fe | gi | 2 he | 2 i | ji | ke | 2 li | 3 me | ni | pe | 2 ri | se | ti | 2 wi | ze
bright_rest: 6 <bright_mid><bright_last> | <bright_shut>
bright_last: 2 <bright_mid><bright_end> | 5 <bright_end>
bright_mid: bi | 2 de | 3 le | 2 li | mi | nde | 2 ne | ni | re | 3 ri | rli | sse | 2 te | tti | vi
bright_end: 3 \n | 4 <bright_shut>
bright_shut: 2 l\n | lm\n | 3 n\n | nk\n | r\n | 2 s\n | t\n | th\n
)",
                               "name");
  return grammar;
}

}  // namespace xgrad::text
