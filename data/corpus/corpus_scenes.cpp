// The embedded corpus: what happens in Mumbleford.  Every scene has its title, its place, its
// weather and its people, and keeps to them; what is lost in the first line is found in the last.

#include <xgrad/data/corpus/corpus_text.hpp>

namespace xgrad::data {

const std::string_view corpus_scenes = R"(
scene: 3 The loss of the <loss> | 3 The trial of <trial> | 2 A visit to <clinic>
  | 2 Bargains for <market> | 2 Knock knock, or the <knock> | 2 Song for a <song>
  | 2 Dear Sir, or the <letter> | 2 Lessons in <lesson> | 2 What <fortune>
  | 2 The duel about a <duel> | 2 The ghost of the <ghost> | 2 How to cook a <kitchen>
  | 2 The census of <census> | 4 Good <idle>

# Where, when, in what weather, and who comes in with what.
setting: <w=place>, in <adj>, <adj> <h=weather>.\n
entering[x]: <x.habit> | 6 with a <np> | the <x.trade> | bringing <nouns>
  | 2 followed by a <np> | <doing> | on a <creature>
close[x,y]: (<closing[x,y]>.)\n\n
closing[x,y]: 3 Curtain | <x.tag> <does>. Curtain | <y.tag> <does>. Curtain | Exeunt, <doing>
  | All sing of <food> | The goose wins again | Exit everyone, with <number> <nouns>

loss: <a=thing>\n<setting>(Enter <p=person>, looking <spot>.)\n<p.tag><how[p]>
  <gone[p]> <a> <gone_end>\n
  (Enter <q=person!p>, <entering[q]>.)\n<q.tag><how[q]><suspect[q]>\n<banter[p,q]>
  <q.tag>: What is that <spot>?\n<p.tag>: My <a>! <found[p]>\n<close[p,q]>
gone[p]: <p.oath>! My | Help! My | Stop everything! My | Alas! My
gone_end: is gone! | has vanished! | has run away! | has been stolen by a <np>!
suspect[q]: I suspect the <np>. | I suspect a <adj> <relative>. | Look <spot>. | Ask the <np>.
  | It <vp[q]>. | Did it have <number> <nouns>? | Maybe it <vp[q]>.
found[p]: It was <spot>! | A <np> <did_to> it! | It only <went>! | I <did_to> it again!

trial: <p=person>\n<setting>(The judge is <q=person!p>, <entering[q]>.)\n
  <q.tag>: <p>, you stand accused of <c=crime>.\n
  <p.tag><how[p]><plead[p]>\n<witness><q.tag><how[q]>For <c>, you shall <do_to> <obj[q]> <how_so>.\n
  <p.tag>: <p.oath>!\n<close[p,q]>
crime: stealing a <np> | waking a <np> | insulting a <np> | painting a <animal> <colour>
  | eating <number> <nouns> | dancing with a <np> | teaching a <animal> to <skill>
  | selling <food> as <food> | kissing a <np> | being <adj> | smuggling <nouns> | marrying a <np>
plead[p]: Not guilty, I was <doing>. | Guilty, but <adj>. | My <p.ware> made me do it.
  | I deny the <np>. | I confess to <number> <nouns>. | I was <spot>. | I only <did_to> <obj[p]>.
witness: 2 <banter[q,p]>
  | (Enter <r=person!p!q>, <entering[r]>.)\n<line[r,q]><line[p,r]><banter[q,r]>
  | (A <np> is sworn in.)\n<banter[q,p]>

clinic: nobody\n<setting>(The doctor is <doing>. <q=person> takes over.)\n
  (Enter <p=person!q>, <entering[p]>.)\n
  <p.tag>: <p.oath>! I have <s=ailment>.\n<q.tag><how[q]><examine[q]>\n<banter[p,q]>
  <q.tag>: For <s> you must <s.cure>.\n<p.tag>: <thanks[p]>\n<close[p,q]>
examine[q]: Show me your <body>. | Say <noun>. | I see a <np> in there.
  | Your <body> is <condition>. | Hold this <np>. | Have you <did_to> <obj[q]>?
thanks[p]: Will it cost <price>? | I feel <adj> already. | I would rather <do_to> <obj[p]>.
  | And my <p.ware>? | The last one said <noun>.
table ailment: name | cure
  hiccups that rhyme | recite <food> backwards
  a squeaking knee | oil it with a <noun>
  a cold ear | wear a <adj> muffin on it
  the wobbles | stand on a <noun>
  a lost sneeze | tickle it with a <noun>
  turnip elbow | plant a <noun> on it
  noisy hair | hush it with a <noun>
  the giggles | read a <adj> law aloud
  a sad toe | buy it a <adj> hat
  double vision of geese | count <nouns>
  too much Monday | sleep <how_so>
  a loose shadow | sew it to a <noun>
  glass feet | walk only on <nouns>
  foggy thoughts | open a <noun>
  a swallowed whistle | hum to a <animal>
  borrowed dreams | return the <noun>

market: <nouns>\n<setting>(<p=person> has a stall. <q=person!p> has <price>.)\n
  <p.tag>: Buy my <a=thing>! Only <n=count> buttons!\n<q.tag><how[q]><haggle[q]>\n
  <p.tag>: Then <n.next> buttons.\n
  <banter[q,p]><q.tag>: You said <n>!\n<p.tag>: And now it is <n.after>.\n<q.tag>: <deal[q]>\n
  <close[p,q]>
haggle[q]: For a <a>? <q.oath>! | My <relative> sells them for <price>. | It <did[q]>.
  | I will give you <price>. | Can it <skill>? | Is it true that it <vp[q]>?
deal[q]: Done! | I would rather <do_to> <obj[q]>. | Wrap it in a <np>. | I only have <price>.
  | Keep the <a>!

knock: <noun>\n<setting>(<p=person> is in. <q=person!p> is out.)\n<q.tag>: Knock knock.\n<p.tag>
  <how[p]>Who is there?\n
  <q.tag>: <k=joke>.\n<p.tag>: <k> who?\n<q.tag>: <k.line>\n<banter[p,q]><close[p,q]>
table joke: word | line
  Kettle | Kettle down, I have <food>.
  Barrel | Barrel anybody lets in a <noun>.
  Candle | Candle <animal> let me in instead?
  Ferry | Ferry sorry, I wanted the <noun>.
  Otter | Otter open up, I have a <noun>.
  Gravy | Gravy mistake, asking a <noun>.
  Beak | Beak quick, I see a <animal>.
  Wool | Wool you please find the <noun>?
  Moth | Moth of us <nouns> are freezing.
  Radish | Radish or not, I bring <nouns>.
  Badger | Badger better hide the <noun>.
  Quill | Quill you lend me a <noun>?
  Bream | Bream me a <adj> towel.
  Mole | Mole over, I have <number> <nouns>.
  Heron | Heron the step it is <adj>.
  Marrow | Marrow never comes without a <noun>.
  Fleece | Fleece be <adj>, I have a <noun>.
  Hinge | Hinge you <adj>, too?

song: <np>\n<setting>(<p=person> sings. <q=person!p> plays a <np>.)\n<verse[p]><verse[p]><refrain>
  <verse[q]>
  <q.tag><how[q]><speech[q,p]><banter[p,q]><close[p,q]>
verse[x]{e}: <sings[x]> <e=rhyme>,\n<answers[x]> <e.second>.\n
sings[x]: The <np> <went> | A <np> was lost | My <np> <went> | I <did_to> a <np>
  | O give me some <food> | All <nouns> <went> | We <did_to> the <noun>
answers[x]: And the <np> sang | But the <np> <went> | So I <did_to> a <noun>
  | And my <relative> <went> | Then a <np> <went> | While <nouns> <went>
refrain: O <food>, O <food>, O <noun>!\n | With a <noun> and a <noun> and a honk!\n
  | Tirra lirra, <number> <nouns>!\n | Hey ho, the <adj> <animal>!\n
table rhyme: first | second
  in the night | by candle light
  on frosty nights | without a fright
  by the moon | with a spoon
  in June | before noon
  on the hill | by the mill
  standing still | with the bill
  in the house | with a mouse
  at sea | after tea
  by the lake | with some cake
  half awake | by mistake
  on market day | and blew away
  in the hay | until May
  upon my head | without a bed
  for some bread | and went red
  dressed in wool | with both hands full
  at the bell | with a smell
  under a tree | with a bee
  down the well | and all fell

letter: <noun>\n<setting>(<p=person> reads to <q=person!p>, holding a <np>.)\n
  <p.tag>: Dear <p.trade>! <news> <news> Yours, <r=person!p!q>, <r.trade>.\n
  <q.tag><how[q]><about[q]>\n<banter[p,q]><p.tag>: Dear <r.tag>, <reply[p]>. Yours, <p>.\n
  <close[p,q]>
news: 4 The <np> <vp[p]>. | 3 Your <relative> <vp[p]>. | 3 I <did_to> a <np>.
  | We have <food> daily. | My <np> can <skill> now. | A <creature> lives in my <noun>.
  | Please <do_to> the <np>. | It snowed <nouns>. | Enclosed is <price>. | Burn this <np>.
  | Do not tell the <np>.
about[q]: From <r.tag>! <q.oath>! | What does <r.he> mean by that? | <r.tag> owes me <price>.
  | I hate <r.his> <noun>. | It smells of <food>. | And <r.his> <r.ware>?
reply[p]: no | my <p.ware> sends its love | you are a <np> | keep the <np>
  | thank you for the <food> | the <np> misses you

lesson: <food>\n<setting>(<q=person> teaches. <p=person!q> sits <spot>.)\n
  <q.tag>: What is <u=sums>?\n<p.tag><how[p]><wrong[p]>\n
  <q.tag>: No, <u> is <u.is>.\n<banter[p,q]><q.tag>: And what is <v=sums!u>?\n
  <p.tag>: I think <v> is <v.is>.\n<q.tag>: <praise[q]>\n
  <close[p,q]>
wrong[p]: A <np>. | Is it <number> <nouns>? | My <p.ware> ate it. | That depends on the <np>.
  | More than a <animal> can carry. | I was told there would be <food>.
praise[q]: Have a <np>. | <q.oath>! | Correct, you <adj> <noun>. | You may <do_to> <obj[q]>.
  | Now do it with <nouns>.
table sums: q | is
  two and two | four
  two and three | five
  three and three | six
  three and four | seven
  four and four | eight
  four and five | nine
  five and five | ten
  five and six | eleven
  six and six | twelve
  nine less two | seven
  nine less five | four
  ten less one | nine
  ten less eight | two
  half of ten | five
  half of six | three
  half of a goose | supper

fortune: <m=person> foresaw\n<setting>(Enter <p=person!m> and <q=person!m!p>.)\n<m.tag>
  <how[m]>I see <f=vision>.\n
  <p.tag><how[p]><doubt[p]>\n<banter[p,q]>(Enter <f>.)\n<p.tag>: <p.oath>!\n
  <m.tag>: That will be <price>.\n<close[q,p]>
vision: 4 a <adj> <noun_or_animal> <seen_doing> | <number> <nouns> <doing>
  | the <noun> that can <skill>
seen_doing: with a <np> | in love with a <np> | eating <food> | and <number> <nouns>
doubt[p]: That is only a <np>. | Last week it was <food>. | I <did_to> one already.
  | Will I be <adj>? | Is it about my <p.ware>?

duel: <o=noun>\n<setting>(<p=person> and <q=person!p> meet, each with a <b=noun>.)\n
  <p.tag><how[p]>You called my <o> <g=adj>!\n<q.tag><how[q]>It is <g>. <q.oath>!\n<banter[p,q]>
  <p.tag>: Draw your <b>!\n
  (They fight <how_so>.)\n<q.tag>: <yield[q]>\n<p.tag>: So the <o> was not <g>?\n
  <q.tag>: <truth[q]>\n<close[p,q]>
yield[q]: I yield! | My <body>! | Enough, <q.dear>! | You fight like a <np>! | Is there any <food>?
truth[q]: It was <adj>. | As <adj> as a <noun>. | Never, <q.dear>. | I meant your <relative>.
  | My <np> <vp[q]>.

ghost: <o=noun>\n<setting>(<p=person> holds a <noun>. <q=person!p> holds <p.tag>.)\n<p.tag>
  <how[p]>Who <did_to> the <np>?\n
  A Voice: <moan>\n<q.tag><how[q]><fright[q]>\n
  <banter[p,q]>A Voice: I am the ghost of <z=ghost_of>.\n
  <p.tag>: <p.oath>! What do you want?\nA Voice: My <o>!\n<q.tag>: <ghost_end[q]>\n<close[p,q]>
moan: Who <did_to> my <o>? | I am so <adj>! | Is there any <food>? | Beware the <np>!
fright[q]: Only the <np>. | It is my <relative>. | Ghosts are only <nouns>.
  | I am not afraid, I am <doing>.
ghost_of: your <relative> | 2 a <thing_or_creature> | the old <w.the>
ghost_end[q]: The ghost of <z> wants a <o>? | It is <spot>. | I <did_to> it.
  | Take my <q.ware> instead.

kitchen: <o=noun>\n<setting>(<p=person> cooks. <q=person!p> stirs.)\n<p.tag>: First, <step>\n
  <p.tag>: Then <step>\n
  <q.tag><how[q]><taste[q]>\n<p.tag>: Last, <step>\n<banter[q,p]>(The <o> <dish_end>.)\n
  <q.tag>: <verdict[q]>\n<close[p,q]>
step: 8 <do_to> <step_what>. | add <food>. | throw in a <np>. | take a pinch of <noun>.
step_what: 3 the <np> | <number> <nouns>
taste[q]: It tastes of <noun>. | More <food>! | It is <condition>. | I found a <np> in it.
  | It bit my <body>.
dish_end: <went> | <did_to> the <np> | is served with <food>
verdict[q]: <q.oath>! Delicious. | I have eaten worse <nouns>. | A <adj> little <o>.
  | Call the <np>. | It needs <food>.

census: <cz=nouns>\n<setting>(<p=person> holds the list for <q=person!p>.)\n
  <p.tag>: Last year there were <n=count> <cz>.\n
  <q.tag><how[q]><counting[q]>\n<banter[p,q]><q.tag>: I have counted <n.next> <cz>.\n
  <p.tag>: One of them is a <np>. Write <n>.\n
  (A <np> <does>.)\n<q.tag>: Write <n.after>!\n<close[p,q]>
counting[q]: Does a <np> count? | They keep <doing>. | I <did_to> one.
  | My <q.ware> is not on it. | They all <vp[q]>.

idle: <greeting>\n<setting>(Enter <p=person>, <entering[p]>.)\n
  (Enter <q=person!p>, <entering[q]>.)\n
  <banter[p,q]><close[p,q]>
greeting: morning | evening | neighbours | grief | luck | manners | <noun>
)";

}  // namespace xgrad::data
