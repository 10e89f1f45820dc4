// The embedded corpus: the people of Mumbleford, the places they meet in and the weather they
// blame.
//
// What a person says agrees with who it is: the columns of a row are met again all through a scene,
// often far apart.

#include <xgrad/data/corpus/corpus_text.hpp>

namespace xgrad::data {

const std::string_view corpus_people = R"(
table person: name | tag | trade | he | his | habit | oath | dear | ware
  Mrs Crumb | Crumb | baker | she | her | dusting flour | Butter and thunder | dumpling | <bread>
  Tobias Wick | Wick | candlemaker | he | his | trimming a wick | Wax and wane | spark | <candles>
  Old Pellow | Pellow | ferryman | he | his | wringing a hat | Mind the damp | passenger | <boats>
  Nettle Grub | Nettle | herbalist | she | her | sniffing air | Thistle and thyme | sprout | <herbs>
  Captain Bream | Bream | sailor | he | his | saluting a pot | Shiver my biscuits | shipmate | <sea>
  Doctor Quill | Quill | doctor | he | his | taking a pulse | Most irregular | patient | <physic>
  Hob Anvil | Hob | blacksmith | he | his | hitting softly | Hot iron, cold tea | old nail | <iron>
  Widow Larch | Larch | clockmaker | she | her | winding up | Tick before tock | minute | <clocks>
  Young Finch | Finch | postman | he | his | running on the spot | Not my fault | addressee | <post>
  Mayor Button | Button | mayor | he | his | polishing a chain | Let it be minuted | voter | <law>
  Sister Honora | Honora | beekeeper | she | her | humming twice | Hum and honey | drone | <bees>
  Ludo Reed | Ludo | fiddler | he | his | plucking a string | From the top | maestro | <music>
  Miss Pym | Pym | teacher | she | her | rapping on a slate | Sit up straight | child | <school>
  Barnaby | Barnaby | goat | he | his | chewing a curtain | Meh | delicious friend | <fodder>
  Ottoline | Otto | owl | she | her | turning her head round | Hoot and hush | large mouse | <books>
  Sir Croak | Croak | frog knight | he | his | drawing a sword | Have at you | varlet | <chivalry>
  Gundry | Gundry | mole | he | his | digging politely | Downward, friends | dweller | <tunnels>
  Madam Vesper | Vesper | seer | she | her | eyeing a turnip | As foretold | doomed soul | <fate>
  Gertrude | Gert | goose | she | her | marching in a square | Honk | suspect | <watch>
  Brindle | Brindle | cat | she | her | pushing a cup off a shelf | Fish first | debtor | <taxes>
  Percy Vane | Percy | prophet | he | his | licking a finger | Blow me sideways | fair face | <sky>
  Granny Moth | Granny | weaver | she | her | unpicking a sock | Knit one, drop one | lamb | <wool>

bread: loaf | bun | crust | flour bin | rye bread | currant cake | puff pastry | oven | dough
  | yeast
candles: wax drip | candle | snuffer | wick | night light | beeswax | lantern glass | taper
  | soot jar
boats: ferry | rudder | bilge | left oar | right oar | rope | mooring post | towline | leaky hull
herbs: nettle soup | sage | mint | hedge salad | garlic | poultice | root cellar | dandelion wine
sea: cutlass | ship in a bottle | parrot | anchor | sea chest | spyglass | cannon | rum cake
  | logbook
physic: cough drop | stethoscope | leech | pill | skeleton | tonic | large spoon | eye chart
iron: anvil | bellows | poker | hinge | tongs | iron gate | rivet | box of nails | ploughshare
clocks: pendulum | cuckoo | mainspring | hour hand | second hand | alarm | hourglass | gearwheel
post: satchel | stamp | red bicycle | post horn | detour | wrong address | sealing wax | dog bite
law: gavel | speech | bylaw | town seal | minute book | statue | chain of office | ribbon cutting
bees: queen bee | hive | honeycomb | smoke pot | veil | swarm | clover field | mead | beetle trap
music: lute | fiddle bow | E string | waltz | lullaby | jig | metronome | songbook | encore | rosin
school: chalk | slate | spelling list | times table | inkwell | hand bell | dunce cap | gold star
fodder: thistle | left boot | hedge | picnic | rag rug | straw | washing line | birthday cake | hoof
books: index card | atlas | overdue list | reading lamp | bookmark | corner | chapter | owl pellet
chivalry: lily pad | lance | shield | racing snail | moat | table manners | coat of arms
  | helmet | vow
tunnels: shovel | tunnel | miner's hat | burrow | molehill | underground map | worm supply | ceiling
fate: crystal ball | tea leaf | deck of cards | turnip of truth | third eye | shawl of stars | omen
watch: beak | night round | list of suspects | wing | egg | guardhouse | pond | official honk
taxes: receipt | herring fund | cushion | ninth life | cream allowance | final demand | paw print
sky: barometer | sponge | forecast | cloud chart | weather flag | almanac | isobar
  | forked lightning
wool: loom | yarn | shawl | spinning wheel | knitting bag | mitten | tea cosy | moth trap | bobbin

table place: at | the
  On the <adj> bridge | bridge
  In the <adj> bakery | bakery
  Behind the <adj> mill | mill
  At the <adj> market cross | market cross
  Under the <adj> clock tower | clock tower
  In a <adj> town hall | town hall
  Beside the <adj> duck pond | duck pond
  Down in the <adj> cellar | cellar
  Up on the <adj> roof | roof
  At a <adj> old landing | old landing
  Across the <adj> churchyard | churchyard
  Outside the <adj> inn | inn
  Inside the <adj> library | library
  Near the <adj> stable | stable
  Along the <adj> turnip field | turnip field
  Halfway up the <adj> hill | hill
  Aboard the <adj> barge | barge
  Within the <adj> crypt | crypt

table weather: sky | it
  fog | fog
  rain | rain
  snow | snow
  wind | wind
  sunshine | sunshine
  thunder | thunder
  hail | hail
  frost | frost
  gloom | gloom
  mist | mist
  drizzle | drizzle
  moonlight | moonlight
)";

}  // namespace xgrad::data
