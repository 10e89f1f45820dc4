// The embedded corpus: what people say.  x is the one who speaks, y the one spoken to; h is the
// scene's weather and w its place, bound before anyone opens their mouth.

#include <xgrad/data/corpus/corpus_text.hpp>

namespace xgrad::data {

const std::string_view corpus_talk = R"(
# One line of dialogue: who, perhaps how, what.
line[x,y]: <x.tag><how[x]><speech[x,y]>
how[x]: 5 :_ | _(<manner[x]>):_
tail[x,y]: 6 .\n | 2 !\n | , <address[x,y]>.\n | . <x.oath>!\n | 8 _<more[x]>.\n
more[x]: 4 <link> <clause[x]> | 3 <where_so> <obj[x]> | 2 <how_so>
where_so: under | behind | beside | inside | beneath | atop | outside | despite | instead of
  | opposite | around | past
wail[x,y]: 3 !\n | , <address[x,y]>!\n
query[x,y]: 4 ?\n | , <address[x,y]>?\n
address[x,y]: <x.dear> | <y.tag>
link: and | but | because | before | until | so | while | unless | since | though | when

# Lines in turn, until something happens.  In turn[x,y] it was y who spoke last.
banter[x,y]: <line[x,y]><turn[y,x]>
turn[x,y]: 14 <line[x,y]><turn[y,x]> | 2 <line[y,x]><turn[x,y]> | 2 (<event[x,y]>.)\n
event[x,y]: 2 <x.tag> <does> | 2 <y.tag> <does> | 2 A <creature> <does> | Thunder
  | The <w.the> <went> | Enter a <creature>, <doing> | Exit a <np>, chased by a <np>
  | Somewhere a <np> <went>

# Anybody can say anything about anything.
clause[x]: the <np> <vp[x]> | 2 my <my_obj[x]> <vp[x]> | your <np> <vp[x]> | a <np> <vp[x]>
  | I <vp[x]> | you <vp[x]> | we <vp[x]> | nobody <vp[x]> | <nouns_did[x]>
nouns_did[x]: <number> <nouns> <vp[x]> | some <nouns> <vp[x]> | all <nouns> <vp[x]>
np: 7 <adj><np_end> | 2 <noun>
np_end: 3 _<noun_or_animal> | , <adj> <noun_or_animal>
vp[x]: 8 <did_to> <obj[x]> | 2 <went> <how_so>
obj[x]: 6 the <np> | 4 a <np> | 4 my <my_obj[x]> | 4 your <np> | 2 <number> <nouns>
  | 2 some <food> | nobody
my_obj[x]: 3 <adj> <noun_or_animal> | <x.ware> | <relative>

speech[x,y]: 16 The <the_say[x]><tail[x,y]> | 12 My <my_say[x]><tail[x,y]>
  | 8 Your <np> <vp[x]><tail[x,y]> | 12 A <np> <vp[x]><tail[x,y]> | 14 I <i_say[x,y]>
  | 6 You <you_say[x]><tail[x,y]> | 4 We <vp[x]><tail[x,y]>
  | 3 Never <do_to> <obj[x]><tail[x,y]> | 3 Nobody <vp[x]><tail[x,y]>
  | 3 Somebody <vp[x]><tail[x,y]> | There is a <np> <spot><tail[x,y]>
  | As my <relative> said, <proverb><tail[x,y]> | They say that <proverb><tail[x,y]>
  | 2 <x.oath>! <cry[x,y]> | 8 <question[x,y]> | It is <it_is[x]><tail[x,y]>
  | Bring me <price><wail[x,y]> | 2 If <clause[x]>, I shall <do_to> <obj[x]><tail[x,y]>
  | 3 Please <do_to> <obj[x]><tail[x,y]> | 3 <y.tag>, <plea[x]><tail[x,y]> | Once <once_say[x]>
  | Look, a <np> <doing><wail[x,y]> | 3 No, <clause[x]><tail[x,y]>
  | 3 Yes, but <clause[x]><tail[x,y]> | 6 Every <np> <vp[x]><tail[x,y]>
  | Perhaps <clause[x]><tail[x,y]>

i_say[x,y]{t,n}: 12 <did_to> <obj[x]><tail[x,y]> | 3 <went> <how_so><tail[x,y]>
  | am <am[x]><tail[x,y]> | was a <np> once<tail[x,y]> | never <did_to> <obj[x]><tail[x,y]>
  | would rather <do_to> <obj[x]><tail[x,y]> | must <do_to> <obj[x]><tail[x,y]>
  | had a <n=noun>. Now the <n> has me<tail[x,y]>
  | asked for a <t=thing>, and this is not a <t><tail[x,y]>
  | know a <creature> who can <skill><tail[x,y]>
am[x]: not a <np> | the <x.trade> here | as <adj> as a <noun> | <doing> | more <adj> than <adj>

my_say[x]: 4 <x.ware> <ware_say[x]> | 6 <adj> <noun_or_animal> <vp[x]> | 3 <relative> <vp[x]>
  | <body> is <condition> | other <noun> is a <animal>
ware_say[x]: 4 <vp[x]> | 2 is <condition> | and my <np> are not speaking
the_say[x]: 9 <adj> <noun_or_animal> <did[x]> | <w.the> <did[x]> | <h.it> <did[x]>
  | last <x.trade> <vp[x]> | <x.ware> <did[x]>
did[x]: 5 <vp[x]> | is <condition> | can <skill> | lives in the <w.the> | wants <price>
  | has a <adj> <body>
you_say[x]: 8 <vp[x]> | have a <np> on your <body> | look like a <np> | smell of <food>
  | never could <skill> | may borrow my <x.ware> | owe me <price> | remind me of my <relative>
cry[x,y]: A <np><wail[x,y]> | The <x.ware> <vp[x]><wail[x,y]> | Not the <np><wail[x,y]>
  | Who let the <np> in<query[x,y]>
it_is[x]: only a <np> | always the <noun> | as <adj> as a <animal> | my <x.ware>
  | not easy being a <x.trade>
plea[x]: hold my <x.ware> | <do_to> <obj[x]> | stop <doing> | do not <do_to> <obj[x]>
  | there is a <noun> on your <body>
once_say[x]{u,t}: there was a <u=creature>. It <did_to> <obj[x]>. The end of the <u>.\n
  | I found a <t=thing>. I gave the <t> to a <np>.\n
  | I was <adj>. Then came the <u=creature>. Beware of the <u>.\n

# A question is sometimes answered, and then by the one who was asked.
question[x,y]: Have you seen <seen[x,y]> | Why is the <noun> <why[x,y]> | What is <what[x,y]>
  | Where is <where[x,y]> | Do you <do_to> <obj[x]><query[x,y]>
  | 2 Who <did_to> <obj[x]><query[x,y]> | How many <many[x,y]> | Is that a <that[x,y]>
  | Can a <np> <skill><query[x,y]>
answer[y,x]: <y.tag><how[y]>
seen[x,y]{v}: my <v=thing><query[x,y]><answer[y,x]>Your <v> is <spot><tail[y,x]>
  | a <creature> <doing><query[x,y]> | the <x.ware><query[x,y]>
why[x,y]: <condition><query[x,y]><answer[y,x]>Because <clause[y]>.\n
what[x,y]{v,b}: a <v=noun> without a <noun><query[x,y]><answer[y,x]>A <adj> <v><tail[y,x]>
  | that on your <b=body><query[x,y]><answer[y,x]>On my <b>? A <np><tail[y,x]>
where[x,y]{v,r}: the <v=thing><query[x,y]><answer[y,x]>The <v> is <spot><tail[y,x]>
  | your <r=relative><query[x,y]><answer[y,x]>My <r> <vp[y]><tail[y,x]>
many[x,y]{v}: <v=nouns> have you<query[x,y]><answer[y,x]><count_up[y,x,v]>
count_up[y,x,v]{n}: I had <n=count>, but now I have <n.next> <v><tail[y,x]>
  | Counting the <adj> one, <n=count>. No, <n.next>. No, <n.after>!\n
that[x,y]{v}: <v=thing_or_creature><query[x,y]><answer[y,x]><that_is[y,x,v]>
that_is[y,x,v]: No, that is my <y.ware><tail[y,x]> | It was a <v> once<tail[y,x]>
  | Do not call my <relative> a <v><tail[y,x]> | A <v> and <price><tail[y,x]>
)";

}  // namespace xgrad::data
