#include <xgrad/data/corpus/corpus.hpp>

namespace xgrad::text {

const Grammar& corpus_grammar() {
  // Scenes from the village of Mumbleford, in the notation of grammar.hpp.
  static const Grammar grammar(R"(
# The people: what one says agrees with who it is.  Then their wares, the places and the weather.
person.tag.trade.he.his.habit.oath.dear.ware:
  Mrs Crumb / Crumb / baker / she / her / dusting flour / Butter and thunder / dumpling / <bread>
  | Tobias Wick / Wick / candlemaker / he / his / trimming a wick / Wax and wane / spark / <candles>
  | Old Pellow / Pellow / ferryman / he / his / wringing a hat / Mind the damp / passenger / <boats>
  | Nettle Grub / Nettle / herbalist / she / her / sniffing air / Thistle and thyme / sprout / <herbs>
  | Captain Bream / Bream / sailor / he / his / saluting a pot / Shiver my biscuits / shipmate / <sea>
  | Doctor Quill / Quill / doctor / he / his / taking a pulse / Most irregular / patient / <physic>
  | Hob Anvil / Hob / blacksmith / he / his / hitting softly / Hot iron, cold tea / old nail / <iron>
  | Widow Larch / Larch / clockmaker / she / her / winding up / Tick before tock / minute / <clocks>
  | Young Finch / Finch / postman / he / his / running on the spot / Not my fault / addressee / <post>
  | Mayor Button / Button / mayor / he / his / polishing a chain / Let it be minuted / voter / <law>
  | Sister Honora / Honora / beekeeper / she / her / humming twice / Hum and honey / drone / <bees>
  | Ludo Reed / Ludo / fiddler / he / his / plucking a string / From the top / maestro / <music>
  | Miss Pym / Pym / teacher / she / her / rapping on a slate / Sit up straight / child / <school>
  | Barnaby / Barnaby / goat / he / his / chewing a curtain / Meh / delicious friend / <fodder>
  | Ottoline / Otto / owl / she / her / turning her head round / Hoot and hush / large mouse / <books>
  | Sir Croak / Croak / frog knight / he / his / drawing a sword / Have at you / varlet / <chivalry>
  | Gundry / Gundry / mole / he / his / digging politely / Downward, friends / dweller / <tunnels>
  | Madam Vesper / Vesper / seer / she / her / eyeing a turnip / As foretold / doomed soul / <fate>
  | Gertrude / Gert / goose / she / her / marching in a square / Honk / suspect / <watch>
  | Brindle / Brindle / cat / she / her / pushing a cup off a shelf / Fish first / debtor / <taxes>
  | Percy Vane / Percy / prophet / he / his / licking a finger / Blow me sideways / fair face / <sky>
  | Granny Moth / Granny / weaver / she / her / unpicking a sock / Knit one, drop one / lamb / <wool>
bread: loaf | bun | crust | flour bin | rye bread | currant cake | puff pastry | oven | dough | yeast
candles: wax drip | candle | snuffer | wick | night light | beeswax | lantern glass | taper | soot jar
boats: ferry | rudder | bilge | left oar | right oar | rope | mooring post | towline | leaky hull
herbs: nettle soup | sage | mint | hedge salad | garlic | poultice | root cellar | dandelion wine
sea: cutlass | ship in a bottle | parrot | anchor | sea chest | spyglass | cannon | rum cake | logbook
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
chivalry: lily pad | lance | shield | racing snail | moat | table manners | coat of arms | helmet | vow
tunnels: shovel | tunnel | miner's hat | burrow | molehill | underground map | worm supply | ceiling
fate: crystal ball | tea leaf | deck of cards | turnip of truth | third eye | shawl of stars | omen
watch: beak | night round | list of suspects | wing | egg | guardhouse | pond | official honk
taxes: receipt | herring fund | cushion | ninth life | cream allowance | final demand | paw print
sky: barometer | sponge | forecast | cloud chart | weather flag | almanac | isobar | forked lightning
wool: loom | yarn | shawl | spinning wheel | knitting bag | mitten | tea cosy | moth trap | bobbin
place.the: On the <adj> bridge / bridge | In the <adj> bakery / bakery | Behind the <adj> mill / mill
  | At the <adj> market cross / market cross | Under the <adj> clock tower / clock tower
  | In a <adj> town hall / town hall | Beside the <adj> duck pond / duck pond | Down in the <adj> cellar / cellar
  | Up on the <adj> roof / roof | At a <adj> old landing / old landing | Across the <adj> churchyard / churchyard
  | Outside the <adj> inn / inn | Inside the <adj> library / library | Near the <adj> stable / stable
  | Along the <adj> turnip field / turnip field | Halfway up the <adj> hill / hill | Aboard the <adj> barge / barge
  | Within the <adj> crypt / crypt
weather: fog | rain | snow | wind | sunshine | thunder | hail | frost | gloom | mist | drizzle | moonlight

# Words.  In a list none may be the beginning of another (hat and hatbox), nor in lists that a choice offers side
# by side.  Adjectives, things and animals begin with a consonant, so that "a" is always right.
adj: brass | wooden | damp | crooked | polite | suspicious | velvet | lukewarm | haunted | borrowed | secret | purple
  | rusty | tender | noble | forgotten | second-hand | ticklish | grumpy | bashful | slippery | tuneful | boiled
  | pickled | left-handed | dreary | wobbly | buttered | famous | sleepy | hollow | patient | runaway | tiny
  | gigantic | melancholy | fragrant | squeaky | golden | silver | copper | leather | paper | knitted | folded
  | frozen | toasted | painted | musical | mossy | moonlit | stolen | lucky | cursed | hairy | bald | whiskered
  | spotted | striped | crumpled | dented | dusty | muddy | soapy | salty | peppery | sour | mouldy | ripe | cold
  | warm | loud | nervous | brave | lazy | jealous | tragic | doubtful | legal | private | royal | rare | modest
  | proud | vain | sinful | gentle | fierce | dizzy | portable | retired | rented | talking | humming | dripping
  | thoughtful | green | blue | yellow | bottomless | hand-painted | fat | thin | short | long | quick | slow | quiet
  | pink | grey | black | white | big | wet | dry | doleful | merry | mad | sane | fresh | dull | sharp | smug | shy
  | rude | kind | cruel | dear | cheap | bent | flat | round | square | tall | deep | sweet | bitter | raw | smoked
  | roasted | stuffed | hot | lame | deaf | drunk | sober | poor | rich | holy | plain | stately | fishy | hazy
  | woolly | silky | crispy | chilly | bouncy | lumpy | leafy | thirsty | hungry | sulky | wan | wee | pert | prim
  | mild | meek | lush | zany | coy | dim | due | fit | fond | glum | gruff | hoarse | jolly | lax | mean | moody
  | naive | neat | nosy | pious | posh | prickly | rash | ragged | scaly | slim | snug | soft | spry | steep | stern
  | tame | tidy | vile | weary | wise | witty | young | zesty | mute | numb | bare | fake | vast | keen | calm | lofty
  | nimble | humble | feeble | double | magnetic
noun: spoon | teapot | ladder | lantern | bucket | turnip | trumpet | whistle | button | thimble | wheelbarrow
  | kettle | hat | boot | glove | pillow | pudding | pie | cheese | cabbage | carrot | parsnip | biscuit | pancake
  | sausage | herring | kipper | broom | barrel | basket | bell | fiddle | drum | flute | candle | mirror | comb
  | brush | needle | ribbon | blanket | sock | waistcoat | petticoat | wig | moustache | map | compass | globe
  | telescope | keyhole | padlock | doorknob | chimney | cupboard | wardrobe | washtub | saucepan | rolling pin
  | sundial | table | wall | weathercock | scarecrow | tombstone | signpost | milestone | haystack | pitchfork
  | saddle | horseshoe | beehive | birdcage | tent | parcel | letter | postcard | ledger | dictionary | cookbook
  | riddle | rumour | shadow | sneeze | dream | moonbeam | tulip | thundercloud | puddle | snowball | pebble
  | gargoyle | wedding cake | gingerbread | mustard pot | pepper mill | jam tart | jug | goblet | crown | medal
  | trombone | bagpipe | music box | sofa | rocking chair | puppet | marble | kite | balloon | bonnet | buckle
  | shoelace | napkin | fork | doormat | curtain | butter dish | suitcase | sandwich | potato | radish | noodle
  | violin | hammock | periscope | pocket watch | toothbrush | bagel | banjo | bench | bishop | bonfire | bottle
  | cork | cradle | crumpet | cushion | dagger | diary | fence | flag | gate | gong | guitar | harp | hinge | hook
  | jacket | knot | lemon | lettuce | lid | mop | muffin | nail | nutmeg | pear | piano | plum | purse | quilt | rake
  | robe | rug | scarf | scone | sieve | sledge | stamp | sponge | stool | sword | tower | tray | trifle | vase
  | turban | zither | mug | tub | jar | net | peg | sail | sink | lamp | lock | fig | yam | tap | toy | van | cart
  | coat | cape | ring | rose | twig | log | fern | brick | tile | desk | book | poem | wish | yawn | joke | clue
  | debt | bib | cave | crib | dart | dice | fan | fez | fuse | gown | helm | jet | keg | loom | mask | moat | nest
  | pawn | quiz | raft | sack | tart | veil | vest | whip | yolk | zip
nouns: spoons | teapots | ladders | lanterns | buckets | turnips | trumpets | whistles | buttons | thimbles | kettles
  | hats | boots | gloves | pillows | puddings | pies | cheeses | cabbages | carrots | pancakes | sausages | herrings
  | brooms | bells | fiddles | drums | candles | mirrors | socks | wigs | maps | chimneys | washtubs | ghosts | tents
  | letters | riddles | rumours | shadows | dreams | puddles | pebbles | crowns | kites | balloons | curtains
  | potatoes | noodles | geese | goats | owls | bees | lids | bagels | lemons | muffins | pianos | plums | forks
  | flags | gongs | mops | knots | rugs | vases | toads | moths | uncles | bishops | aunts | dentists | sneezes
  | tulips | swords | nails | pears | scones
animal: goose | goat | badger | heron | hedgehog | pigeon | donkey | toad | cow | sheep | ferret | weasel | mole
  | magpie | rooster | turkey | trout | snail | beetle | bat | kitten | pony | rabbit | squirrel | hamster | walrus
  | penguin | tortoise | lobster | caterpillar | wolf | bear | piglet | duck | raven | camel | crab | dragon | fox
  | hare | hen | lizard | monkey | newt | rat | robin | shark | stork | swan | tiger | vulture | whale | wombat | yak
  | zebra
thing: 3 <adj> <noun> | <noun>
creature: 3 <adj> <animal> | <animal>
thing_or_creature: 6 <adj> <noun_or_animal> | 2 <noun>
noun_or_animal: 2 <noun> | <animal>
# What one does to another, and how.  In the past tense there is no agreement to get wrong.
did_to: insulted | borrowed | painted | married | buried | tickled | arrested | buttered | swallowed | kissed
  | knitted | polished | invented | worshipped | forgot | admired | blamed | chased | carried | tuned | hid | sold
  | stole | fried | frightened | followed | counted | dropped | washed | juggled | licked | lost | mended | named
  | ate | offended | peeled | pinched | photographed | praised | punished | salted | sat on | sketched | sniffed
  | squeezed | stirred | sued | taught | thanked | unscrewed | voted for | weighed | whispered to | woke | wore
  | wrestled | baptised | boiled | bought | bribed | cheated | climbed | dug up | danced with | divorced | dreamt of
  | envied | fell into | feared | fed | folded | greeted | haunted | hugged | ironed | kept | kicked | loved | misled
  | milked | needed | outran | pardoned | proposed to | quoted | replaced | resembled | ruined | sang to | saw
  | slept in | smuggled | spoiled | tasted | tripped over | bit | cut | dyed | lit | met | led | rang | rode | shook
  | spun | swept | swung | tied | tore | threw | tugged | used | vexed | warmed | won | aimed at | built | drew
  | drank | held | heard | jilted | knew | nursed | owned | paid | pawned | pulled | rubbed | shaved | spied on
  | stung | trapped | underestimated | upset | wanted | wept for | yodelled at
do_to: insult | borrow | paint | marry | bury | tickle | arrest | butter | swallow | kiss | knit | polish | worship
  | forget | admire | blame | chase | carry | tune | hide | sell | steal | fry | follow | count | drop | wash | juggle
  | lick | lose | mend | eat | peel | pinch | praise | punish | salt | sit on | sniff | squeeze | stir | thank
  | vote for | weigh | wake | wear | boil | buy | bribe | climb | dance with | divorce | envy | fear | fold | greet
  | hug | iron | keep | kick | love | milk | pardon | replace | ruin | sing to | smuggle | spoil | taste | trust
  | upset | weep for
went: sneezed | fainted | sulked | pirouetted | melted | leaked | blinked | shrank | grew | exploded | snored
  | hatched | blushed | howled | limped | glowed | wobbled | vanished | yawned | floated | giggled | burned | hummed
  | stumbled | whistled | gossiped | escaped | froze | rusted | bounced | trembled | rhymed | sobbed | evaporated
  | resigned
how_so: at noon | at night | in church | by mistake | by post | on purpose | in public | at sea | on Monday | in June
  | for money | for love | for a bet | in secret | with gusto | upside down | twice | again | too soon | in tune
  | like a <noun_or_animal> | without a <noun> | in the <h> | near the <w.the> | all day
manner x: 6 <adverb> | 2 to a <noun> | 2 like a <animal> | 2 with a <noun> | 2 behind a <noun> | 2 in a <noun>
  | through a mouthful of <food> | <x.habit> | waving <x.his> <noun>
adverb: softly | loudly | darkly | sweetly | blushing | yawning | sternly | proudly | grandly | sadly | hopefully
  | faintly | bravely | crossly | drily | gravely | kindly | meekly | nobly | oddly | politely | quickly | rudely
  | shyly | smugly | tenderly | vaguely | wisely
food: porridge | soup | gravy | plum jam | toast | dumplings | custard | mushrooms | pickles | stew | fudge | lentils
  | mutton | honey | rhubarb | marmalade | beans | spinach | garlic | bacon | oatmeal | treacle | curry
body: nose | left knee | right knee | chin | elbow | head | shoulder | toe | tongue | ear | conscience | belly
relative: grandmother | uncle | cousin | husband | twin | landlady | nurse | godmother | aunt | dentist | wife
  | mother | papa | nephew | niece | stepson | lawyer | tailor
number: two | three | four | five | six | seven | eight | nine | ten | eleven | twelve | thirty | forty
count.next.after: two / three / four | three / four / five | four / five / six | five / six / seven
  | six / seven / eight | seven / eight / nine | eight / nine / ten | nine / ten / eleven | ten / eleven / twelve
  | eleven / twelve / thirteen
price: 3 <number> <nouns> | half a <noun> | my <relative> | 2 a <thing> | one song
does: sneezes | faints | dances with a <np> | drops a <np> | falls into a <np> | bows to a <np> | hides a <np>
  | eats the <np> | salutes a <np> | weeps into a <np> | looks for a <np> | licks the <np> | turns <colour>
  | trips over a <np> | plays the <noun> | juggles <nouns> | nods to the <np> | opens a <np> | finds a <np>
  | whistles at a <np> | kisses the <np> | writes to a <np> | sits on a <np> | hums | borrows a <np> | marries a <np>
  | chases the <np> | peels a <np> | brings the <np> a <np>
colour: pink | red | green | pale | purple | blue | grey | yellow
condition: 2 <adj> | <doing>
doing: sneezing | sulking | dancing | melting | leaking | singing | shrinking | growing | ticking | snoring | hatching
  | blushing | howling | limping | glowing | plotting | wobbling | waiting for <food> | wearing a <noun>
  | telling lies | asking for <nouns> | learning to <skill> | hiding from a <animal>
skill: swim | waltz | yodel | read | juggle | speak <animal> | catch a <animal> | mend a <noun> | play the <noun>
  | say <noun> | fly | lie | cook <food> | count <nouns> | tell a <noun> from a <noun>
spot: in the <noun> | under the <noun> | behind the <noun> | on top of the <animal> | up the chimney
  | inside a <animal> | near my <noun> | next to a <noun> | between two <nouns> | at my <relative>'s house
proverb: a <thing> gathers no <noun> | two <nouns> do not make a <noun> | never <do_to> a <noun> at night
  | every <noun> <did_to> a <noun> | the <adj> <animal> <did_to> the <noun> | many <nouns> spoil the <food>
  | better a <noun> in the hand than a <animal> on the <body> | <do_to> before you <skill>
  | you can lead a <animal> to <food> | no <noun> is safe from a <animal> | still <nouns> run deep

# What people say: x speaks to y.  The scene's place w and weather h are bound before anyone opens their mouth.
# One line of dialogue: who, perhaps how, what.
line xy: <x.tag><how x><speech xy>
how x: 5 :_ | _(<manner x>):_
tail xy: 6 .\n | 2 !\n | , <address xy>.\n | . <x.oath>!\n | 8 _<more x>.\n
more x: 4 <link> <clause x> | 3 <where_so> <obj x> | 2 <how_so>
where_so: under | behind | beside | inside | beneath | atop | outside | despite | instead of | opposite | around
  | past
wail xy: 3 !\n | , <address xy>!\n
query xy: 4 ?\n | , <address xy>?\n
address xy: <x.dear> | <y.tag>
link: and | but | because | before | until | so | while | unless | since | though | when
# Lines in turn, until something happens.  In <turn xy> it was y who spoke last.
banter xy: <line xy><turn yx>
turn xy: 14 <line xy><turn yx> | 2 <line yx><turn xy> | 2 (<event xy>.)\n
event xy: 2 <x.tag> <does> | 2 <y.tag> <does> | 2 A <creature> <does> | Thunder | The <w.the> <went>
  | Enter a <creature>, <doing> | Exit a <np>, chased by a <np> | Somewhere a <np> <went>
# Anybody can say anything about anything.
clause x: the <np> <vp x> | 2 my <my_obj x> <vp x> | your <np> <vp x> | a <np> <vp x> | I <vp x> | you <vp x>
  | we <vp x> | nobody <vp x> | <nouns_did x>
nouns_did x: <number> <nouns> <vp x> | some <nouns> <vp x> | all <nouns> <vp x>
np: 7 <adj><np_end> | 2 <noun>
np_end: 3 _<noun_or_animal> | , <adj> <noun_or_animal>
vp x: 8 <did_to> <obj x> | 2 <went> <how_so>
obj x: 6 the <np> | 4 a <np> | 4 my <my_obj x> | 4 your <np> | 2 <number> <nouns> | 2 some <food> | nobody
my_obj x: 3 <adj> <noun_or_animal> | <x.ware> | <relative>
speech xy: 16 The <the_say x><tail xy> | 12 My <my_say x><tail xy> | 8 Your <np> <vp x><tail xy>
  | 12 A <np> <vp x><tail xy> | 14 I <i_say xy> | 6 You <you_say x><tail xy> | 4 We <vp x><tail xy>
  | 3 Never <do_to> <obj x><tail xy> | 3 Nobody <vp x><tail xy> | 3 Somebody <vp x><tail xy>
  | There is a <np> <spot><tail xy> | As my <relative> said, <proverb><tail xy> | They say that <proverb><tail xy>
  | 2 <x.oath>! <cry xy> | 8 <question xy> | It is <it_is x><tail xy> | Bring me <price><wail xy>
  | 2 If <clause x>, I shall <do_to> <obj x><tail xy> | 3 Please <do_to> <obj x><tail xy>
  | 3 <y.tag>, <plea x><tail xy> | Once <once_say x> | Look, a <np> <doing><wail xy> | 3 No, <clause x><tail xy>
  | 3 Yes, but <clause x><tail xy> | 6 Every <np> <vp x><tail xy> | Perhaps <clause x><tail xy>
i_say xy: 12 <did_to> <obj x><tail xy> | 3 <went> <how_so><tail xy> | am <am x><tail xy> | was a <np> once<tail xy>
  | never <did_to> <obj x><tail xy> | would rather <do_to> <obj x><tail xy> | must <do_to> <obj x><tail xy>
  | had a <n=noun>. Now the <n> has me<tail xy> | asked for a <t=thing>, and this is not a <t><tail xy>
  | know a <creature> who can <skill><tail xy>
am x: not a <np> | the <x.trade> here | as <adj> as a <noun> | <doing> | more <adj> than <adj>
my_say x: 4 <x.ware> <ware_say x> | 6 <adj> <noun_or_animal> <vp x> | 3 <relative> <vp x> | <body> is <condition>
  | other <noun> is a <animal>
ware_say x: 4 <vp x> | 2 is <condition> | and my <np> are not speaking
the_say x: 9 <adj> <noun_or_animal> <did x> | <w.the> <did x> | <h> <did x> | last <x.trade> <vp x> | <x.ware> <did x>
did x: 5 <vp x> | is <condition> | can <skill> | lives in the <w.the> | wants <price> | has a <adj> <body>
you_say x: 8 <vp x> | have a <np> on your <body> | look like a <np> | smell of <food> | never could <skill>
  | may borrow my <x.ware> | owe me <price> | remind me of my <relative>
cry xy: A <np><wail xy> | The <x.ware> <vp x><wail xy> | Not the <np><wail xy> | Who let the <np> in<query xy>
it_is x: only a <np> | always the <noun> | as <adj> as a <animal> | my <x.ware> | not easy being a <x.trade>
plea x: hold my <x.ware> | <do_to> <obj x> | stop <doing> | do not <do_to> <obj x> | there is a <noun> on your <body>
once_say x: there was a <u=creature>. It <did_to> <obj x>. The end of the <u>.\n
  | I found a <t=thing>. I gave the <t> to a <np>.\n | I was <adj>. Then came the <u=creature>. Beware of the <u>.\n
# A question is sometimes answered, and then by the one who was asked.
question xy: Have you seen <seen xy> | Why is the <noun> <why xy> | What is <what xy> | Where is <where xy>
  | Do you <do_to> <obj x><query xy> | 2 Who <did_to> <obj x><query xy> | How many <many xy> | Is that a <that xy>
  | Can a <np> <skill><query xy>
answer yx: <y.tag><how y>
seen xy: my <v=thing><query xy><answer yx>Your <v> is <spot><tail yx> | a <creature> <doing><query xy>
  | the <x.ware><query xy>
why xy: <condition><query xy><answer yx>Because <clause y>.\n
what xy: a <v=noun> without a <noun><query xy><answer yx>A <adj> <v><tail yx>
  | that on your <b=body><query xy><answer yx>On my <b>? A <np><tail yx>
where xy: the <v=thing><query xy><answer yx>The <v> is <spot><tail yx>
  | your <r=relative><query xy><answer yx>My <r> <vp y><tail yx>
many xy: <v=nouns> have you<query xy><answer yx><count_up yxv>
count_up yxv: I had <n=count>, but now I have <n.next> <v><tail yx>
  | Counting the <adj> one, <n=count>. No, <n.next>. No, <n.after>!\n
that xy: <v=thing_or_creature><query xy><answer yx><that_is yxv>
that_is yxv: No, that is my <y.ware><tail yx> | It was a <v> once<tail yx> | Do not call my <relative> a <v><tail yx>
  | A <v> and <price><tail yx>

# What happens.  A scene keeps to its place, weather and people; what is lost in its first line is found in its last.
scene: 3 The loss of the <loss> | 3 The trial of <trial> | 2 A visit to <clinic> | 2 Bargains for <market>
  | 2 Knock knock, or the <knock> | 2 Song for a <song> | 2 Dear Sir, or the <letter> | 2 Lessons in <lesson>
  | 2 What <fortune> | 2 The duel about a <duel> | 2 The ghost of the <ghost> | 2 How to cook a <kitchen>
  | 2 The census of <census> | 4 Good <idle>
# Where, when, in what weather, and who comes in with what.
setting: <w=place>, in <adj>, <adj> <h=weather>.\n
entering x: <x.habit> | 6 with a <np> | the <x.trade> | bringing <nouns> | 2 followed by a <np> | <doing>
  | on a <creature>
close xy: (<closing xy>.)\n\n
closing xy: 3 Curtain | <x.tag> <does>. Curtain | <y.tag> <does>. Curtain | Exeunt, <doing> | All sing of <food>
  | The goose wins again | Exit everyone, with <number> <nouns>

loss: <a=thing>\n<setting>(Enter <p=person>, looking <spot>.)\n<p.tag><how p><gone p> <a> <gone_end>\n
  (Enter <q=person !p>, <entering q>.)\n<q.tag><how q><suspect q>\n<banter pq><q.tag>: What is that <spot>?\n
  <p.tag>: My <a>! <found p>\n<close pq>
gone p: <p.oath>! My | Help! My | Stop everything! My | Alas! My
gone_end: is gone! | has vanished! | has run away! | has been stolen by a <np>!
suspect q: I suspect the <np>. | I suspect a <adj> <relative>. | Look <spot>. | Ask the <np>. | It <vp q>.
  | Did it have <number> <nouns>? | Maybe it <vp q>.
found p: It was <spot>! | A <np> <did_to> it! | It only <went>! | I <did_to> it again!

trial: <p=person>\n<setting>(The judge is <q=person !p>, <entering q>.)\n
  <q.tag>: <p>, you stand accused of <c=crime>.\n<p.tag><how p><plead p>\n
  <witness><q.tag><how q>For <c>, you shall <do_to> <obj q> <how_so>.\n<p.tag>: <p.oath>!\n<close pq>
crime: stealing a <np> | waking a <np> | insulting a <np> | painting a <animal> <colour> | eating <number> <nouns>
  | dancing with a <np> | teaching a <animal> to <skill> | selling <food> as <food> | kissing a <np> | being <adj>
  | smuggling <nouns> | marrying a <np>
plead p: Not guilty, I was <doing>. | Guilty, but <adj>. | My <p.ware> made me do it. | I deny the <np>.
  | I confess to <number> <nouns>. | I was <spot>. | I only <did_to> <obj p>.
witness: 2 <banter qp> | (Enter <r=person !pq>, <entering r>.)\n<line rq><line pr><banter qr>
  | (A <np> is sworn in.)\n<banter qp>

clinic: nobody\n<setting>(The doctor is <doing>. <q=person> takes over.)\n(Enter <p=person !q>, <entering p>.)\n
  <p.tag>: <p.oath>! I have <s=ailment>.\n<q.tag><how q><examine q>\n<banter pq><q.tag>: For <s> you must <s.cure>.\n
  <p.tag>: <thanks p>\n<close pq>
examine q: Show me your <body>. | Say <noun>. | I see a <np> in there. | Your <body> is <condition>. | Hold this <np>.
  | Have you <did_to> <obj q>?
thanks p: Will it cost <price>? | I feel <adj> already. | I would rather <do_to> <obj p>. | And my <p.ware>?
  | The last one said <noun>.
ailment.cure: hiccups that rhyme / recite <food> backwards | a squeaking knee / oil it with a <noun>
  | a cold ear / wear a <adj> muffin on it | the wobbles / stand on a <noun> | a lost sneeze / tickle it with a <noun>
  | turnip elbow / plant a <noun> on it | noisy hair / hush it with a <noun> | the giggles / read a <adj> law aloud
  | a sad toe / buy it a <adj> hat | double vision of geese / count <nouns> | too much Monday / sleep <how_so>
  | a loose shadow / sew it to a <noun> | glass feet / walk only on <nouns> | foggy thoughts / open a <noun>
  | a swallowed whistle / hum to a <animal> | borrowed dreams / return the <noun>

market: <nouns>\n<setting>(<p=person> has a stall. <q=person !p> has <price>.)\n
  <p.tag>: Buy my <a=thing>! Only <n=count> buttons!\n<q.tag><how q><haggle q>\n<p.tag>: Then <n.next> buttons.\n
  <banter qp><q.tag>: You said <n>!\n<p.tag>: And now it is <n.after>.\n<q.tag>: <deal q>\n<close pq>
haggle q: For a <a>? <q.oath>! | My <relative> sells them for <price>. | It <did q>. | I will give you <price>.
  | Can it <skill>? | Is it true that it <vp q>?
deal q: Done! | I would rather <do_to> <obj q>. | Wrap it in a <np>. | I only have <price>. | Keep the <a>!

knock: <noun>\n<setting>(<p=person> is in. <q=person !p> is out.)\n<q.tag>: Knock knock.\n
  <p.tag><how p>Who is there?\n<q.tag>: <k=joke>.\n<p.tag>: <k> who?\n<q.tag>: <k.line>\n<banter pq><close pq>
joke.line: Kettle / Kettle down, I have <food>. | Barrel / Barrel anybody lets in a <noun>.
  | Candle / Candle <animal> let me in instead? | Ferry / Ferry sorry, I wanted the <noun>.
  | Otter / Otter open up, I have a <noun>. | Gravy / Gravy mistake, asking a <noun>.
  | Beak / Beak quick, I see a <animal>. | Wool / Wool you please find the <noun>?
  | Moth / Moth of us <nouns> are freezing. | Radish / Radish or not, I bring <nouns>.
  | Badger / Badger better hide the <noun>. | Quill / Quill you lend me a <noun>? | Bream / Bream me a <adj> towel.
  | Mole / Mole over, I have <number> <nouns>. | Heron / Heron the step it is <adj>.
  | Marrow / Marrow never comes without a <noun>. | Fleece / Fleece be <adj>, I have a <noun>.
  | Hinge / Hinge you <adj>, too?

song: <np>\n<setting>(<p=person> sings. <q=person !p> plays a <np>.)\n
  <verse p><verse p><refrain><verse q><q.tag><how q><speech qp><banter pq><close pq>
verse x: <sings x> <e=rhyme>,\n<answers x> <e.second>.\n
sings x: The <np> <went> | A <np> was lost | My <np> <went> | I <did_to> a <np> | O give me some <food>
  | All <nouns> <went> | We <did_to> the <noun>
answers x: And the <np> sang | But the <np> <went> | So I <did_to> a <noun> | And my <relative> <went>
  | Then a <np> <went> | While <nouns> <went>
refrain: O <food>, O <food>, O <noun>!\n | With a <noun> and a <noun> and a honk!\n | Tirra lirra, <number> <nouns>!\n
  | Hey ho, the <adj> <animal>!\n
rhyme.second: in the night / by candle light | on frosty nights / without a fright | by the moon / with a spoon
  | in June / before noon | on the hill / by the mill | standing still / with the bill | in the house / with a mouse
  | at sea / after tea | by the lake / with some cake | half awake / by mistake | on market day / and blew away
  | in the hay / until May | upon my head / without a bed | for some bread / and went red
  | dressed in wool / with both hands full | at the bell / with a smell | under a tree / with a bee
  | down the well / and all fell

letter: <noun>\n<setting>(<p=person> reads to <q=person !p>, holding a <np>.)\n
  <p.tag>: Dear <p.trade>! <news> <news> Yours, <r=person !pq>, <r.trade>.\n<q.tag><how q><about q>\n
  <banter pq><p.tag>: Dear <r.tag>, <reply p>. Yours, <p>.\n<close pq>
news: 4 The <np> <vp p>. | 3 Your <relative> <vp p>. | 3 I <did_to> a <np>. | We have <food> daily.
  | My <np> can <skill> now. | A <creature> lives in my <noun>. | Please <do_to> the <np>. | It snowed <nouns>.
  | Enclosed is <price>. | Burn this <np>. | Do not tell the <np>.
about q: From <r.tag>! <q.oath>! | What does <r.he> mean by that? | <r.tag> owes me <price>. | I hate <r.his> <noun>.
  | It smells of <food>. | And <r.his> <r.ware>?
reply p: no | my <p.ware> sends its love | you are a <np> | keep the <np> | thank you for the <food>
  | the <np> misses you

lesson: <food>\n<setting>(<q=person> teaches. <p=person !q> sits <spot>.)\n<q.tag>: What is <u=sums>?\n
  <p.tag><how p><wrong p>\n<q.tag>: No, <u> is <u.is>.\n<banter pq><q.tag>: And what is <v=sums !u>?\n
  <p.tag>: I think <v> is <v.is>.\n<q.tag>: <praise q>\n<close pq>
wrong p: A <np>. | Is it <number> <nouns>? | My <p.ware> ate it. | That depends on the <np>.
  | More than a <animal> can carry. | I was told there would be <food>.
praise q: Have a <np>. | <q.oath>! | Correct, you <adj> <noun>. | You may <do_to> <obj q>. | Now do it with <nouns>.
sums.is: two and two / four | two and three / five | three and three / six | three and four / seven
  | four and four / eight | four and five / nine | five and five / ten | five and six / eleven | six and six / twelve
  | nine less two / seven | nine less five / four | ten less one / nine | ten less eight / two | half of ten / five
  | half of six / three | half of a goose / supper

fortune: <m=person> foresaw\n<setting>(Enter <p=person !m> and <q=person !mp>.)\n<m.tag><how m>I see <f=vision>.\n
  <p.tag><how p><doubt p>\n<banter pq>(Enter <f>.)\n<p.tag>: <p.oath>!\n<m.tag>: That will be <price>.\n<close qp>
vision: 4 a <adj> <noun_or_animal> <seen_doing> | <number> <nouns> <doing> | the <noun> that can <skill>
seen_doing: with a <np> | in love with a <np> | eating <food> | and <number> <nouns>
doubt p: That is only a <np>. | Last week it was <food>. | I <did_to> one already. | Will I be <adj>?
  | Is it about my <p.ware>?

duel: <o=noun>\n<setting>(<p=person> and <q=person !p> meet, each with a <b=noun>.)\n
  <p.tag><how p>You called my <o> <g=adj>!\n<q.tag><how q>It is <g>. <q.oath>!\n<banter pq><p.tag>: Draw your <b>!\n
  (They fight <how_so>.)\n<q.tag>: <yield q>\n<p.tag>: So the <o> was not <g>?\n<q.tag>: <truth q>\n<close pq>
yield q: I yield! | My <body>! | Enough, <q.dear>! | You fight like a <np>! | Is there any <food>?
truth q: It was <adj>. | As <adj> as a <noun>. | Never, <q.dear>. | I meant your <relative>. | My <np> <vp q>.

ghost: <o=noun>\n<setting>(<p=person> holds a <noun>. <q=person !p> holds <p.tag>.)\n
  <p.tag><how p>Who <did_to> the <np>?\nA Voice: <moan>\n<q.tag><how q><fright q>\n
  <banter pq>A Voice: I am the ghost of <z=ghost_of>.\n<p.tag>: <p.oath>! What do you want?\nA Voice: My <o>!\n
  <q.tag>: <ghost_end q>\n<close pq>
moan: Who <did_to> my <o>? | I am so <adj>! | Is there any <food>? | Beware the <np>!
fright q: Only the <np>. | It is my <relative>. | Ghosts are only <nouns>. | I am not afraid, I am <doing>.
ghost_of: your <relative> | 2 a <thing_or_creature> | the old <w.the>
ghost_end q: The ghost of <z> wants a <o>? | It is <spot>. | I <did_to> it. | Take my <q.ware> instead.

kitchen: <o=noun>\n<setting>(<p=person> cooks. <q=person !p> stirs.)\n<p.tag>: First, <step>\n<p.tag>: Then <step>\n
  <q.tag><how q><taste q>\n<p.tag>: Last, <step>\n<banter qp>(The <o> <dish_end>.)\n<q.tag>: <verdict q>\n<close pq>
step: 8 <do_to> <step_what>. | add <food>. | throw in a <np>. | take a pinch of <noun>.
step_what: 3 the <np> | <number> <nouns>
taste q: It tastes of <noun>. | More <food>! | It is <condition>. | I found a <np> in it. | It bit my <body>.
dish_end: <went> | <did_to> the <np> | is served with <food>
verdict q: <q.oath>! Delicious. | I have eaten worse <nouns>. | A <adj> little <o>. | Call the <np>.
  | It needs <food>.

census: <m=nouns>\n<setting>(<p=person> holds the list for <q=person !p>.)\n
  <p.tag>: Last year there were <n=count> <m>.\n<q.tag><how q><counting q>\n
  <banter pq><q.tag>: I have counted <n.next> <m>.\n<p.tag>: One of them is a <np>. Write <n>.\n(A <np> <does>.)\n
  <q.tag>: Write <n.after>!\n<close pq>
counting q: Does a <np> count? | They keep <doing>. | I <did_to> one. | My <q.ware> is not on it. | They all <vp q>.

idle: <greeting>\n<setting>(Enter <p=person>, <entering p>.)\n(Enter <q=person !p>, <entering q>.)\n
  <banter pq><close pq>
greeting: morning | evening | neighbours | grief | luck | manners | <noun>
)");
  return grammar;
}

}  // namespace xgrad::text
