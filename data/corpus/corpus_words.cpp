// The embedded corpus: words.  In a list none may be the beginning of another (hat and hatbox), nor
// in two lists that a choice offers side by side; the grammar's check says so if it happens.
// Adjectives, things and animals begin with a consonant, so that "a" is always right.

#include <xgrad/data/corpus/corpus_text.hpp>

namespace xgrad::data {

const std::string_view corpus_words = R"(
adj: brass | wooden | damp | crooked | polite | suspicious | velvet | lukewarm | haunted
  | borrowed | secret | purple | rusty | tender | noble | forgotten | second-hand | ticklish
  | grumpy | bashful | slippery | tuneful | boiled | pickled | left-handed | dreary | wobbly
  | buttered | famous | sleepy | hollow | patient | runaway | tiny | gigantic | melancholy
  | fragrant | squeaky | golden | silver | copper | leather | paper | knitted | folded | frozen
  | toasted | painted | musical | mossy | moonlit | stolen | lucky | cursed | hairy | bald
  | whiskered | spotted | striped | crumpled | dented | dusty | muddy | soapy | salty | peppery
  | sour | mouldy | ripe | cold | warm | loud | nervous | brave | lazy | jealous | tragic
  | doubtful | legal | private | royal | rare | modest | proud | vain | sinful | gentle
  | fierce | dizzy | portable | retired | rented | talking | humming | dripping | thoughtful
  | green | blue | yellow | bottomless | hand-painted | fat | thin | short | long | quick
  | slow | quiet | pink | grey | black | white | big | wet | dry | doleful | merry | mad | sane
  | fresh | dull | sharp | smug | shy | rude | kind | cruel | dear | cheap | bent | flat
  | round | square | tall | deep | sweet | bitter | raw | smoked | roasted | stuffed | hot
  | lame | deaf | drunk | sober | poor | rich | holy | plain | stately | fishy | hazy | woolly
  | silky | crispy | chilly | bouncy | lumpy | leafy | thirsty | hungry | sulky | wan | wee
  | pert | prim | mild | meek | lush | zany | coy | dim | due | fit | fond | glum | gruff
  | hoarse | jolly | lax | mean | moody | naive | neat | nosy | pious | posh | prickly | rash
  | ragged | scaly | slim | snug | soft | spry | steep | stern | tame | tidy | vile | weary
  | wise | witty | young | zesty | mute | numb | bare | fake | vast | keen | calm | lofty
  | nimble | humble | feeble | double | magnetic

noun: spoon | teapot | ladder | lantern | bucket | turnip | trumpet | whistle | button
  | thimble | wheelbarrow | kettle | hat | boot | glove | pillow | pudding | pie | cheese
  | cabbage | carrot | parsnip | biscuit | pancake | sausage | herring | kipper | broom
  | barrel | basket | bell | fiddle | drum | flute | candle | mirror | comb | brush | needle
  | ribbon | blanket | sock | waistcoat | petticoat | wig | moustache | map | compass | globe
  | telescope | keyhole | padlock | doorknob | chimney | cupboard | wardrobe | washtub
  | saucepan | rolling pin | sundial | table | wall | weathercock | scarecrow | tombstone
  | signpost | milestone | haystack | pitchfork | saddle | horseshoe | beehive | birdcage
  | tent | parcel | letter | postcard | ledger | dictionary | cookbook | riddle | rumour
  | shadow | sneeze | dream | moonbeam | tulip | thundercloud | puddle | snowball | pebble
  | gargoyle | wedding cake | gingerbread | mustard pot | pepper mill | jam tart | jug | goblet
  | crown | medal | trombone | bagpipe | music box | sofa | rocking chair | puppet | marble
  | kite | balloon | bonnet | buckle | shoelace | napkin | fork | doormat | curtain
  | butter dish | suitcase | sandwich | potato | radish | noodle | violin | hammock | periscope
  | pocket watch | toothbrush | bagel | banjo | bench | bishop | bonfire | bottle | cork
  | cradle | crumpet | cushion | dagger | diary | fence | flag | gate | gong | guitar | harp
  | hinge | hook | jacket | knot | lemon | lettuce | lid | mop | muffin | nail | nutmeg | pear
  | piano | plum | purse | quilt | rake | robe | rug | scarf | scone | sieve | sledge | stamp
  | sponge | stool | sword | tower | tray | trifle | vase | turban | zither | mug | tub | jar
  | net | peg | sail | sink | lamp | lock | fig | yam | tap | toy | van | cart | coat | cape
  | ring | rose | twig | log | fern | brick | tile | desk | book | poem | wish | yawn | joke
  | clue | debt | bib | cave | crib | dart | dice | fan | fez | fuse | gown | helm | jet | keg
  | loom | mask | moat | nest | pawn | quiz | raft | sack | tart | veil | vest | whip | yolk | zip

nouns: spoons | teapots | ladders | lanterns | buckets | turnips | trumpets | whistles
  | buttons | thimbles | kettles | hats | boots | gloves | pillows | puddings | pies | cheeses
  | cabbages | carrots | pancakes | sausages | herrings | brooms | bells | fiddles | drums
  | candles | mirrors | socks | wigs | maps | chimneys | washtubs | ghosts | tents | letters
  | riddles | rumours | shadows | dreams | puddles | pebbles | crowns | kites | balloons
  | curtains | potatoes | noodles | geese | goats | owls | bees | lids | bagels | lemons
  | muffins | pianos | plums | forks | flags | gongs | mops | knots | rugs | vases | toads
  | moths | uncles | bishops | aunts | dentists | sneezes | tulips | swords | nails | pears
  | scones

animal: goose | goat | badger | heron | hedgehog | pigeon | donkey | toad | cow | sheep
  | ferret | weasel | mole | magpie | rooster | turkey | trout | snail | beetle | bat | kitten
  | pony | rabbit | squirrel | hamster | walrus | penguin | tortoise | lobster | caterpillar
  | wolf | bear | piglet | duck | raven | camel | crab | dragon | fox | hare | hen | lizard
  | monkey | newt | rat | robin | shark | stork | swan | tiger | vulture | whale | wombat | yak
  | zebra

thing: 3 <adj> <noun> | <noun>
creature: 3 <adj> <animal> | <animal>
thing_or_creature: 6 <adj> <noun_or_animal> | 2 <noun>
noun_or_animal: 2 <noun> | <animal>

# What one does to another, and how.  In the past tense there is no agreement to get wrong.
did_to: insulted | borrowed | painted | married | buried | tickled | arrested | buttered
  | swallowed | kissed | knitted | polished | invented | worshipped | forgot | admired | blamed
  | chased | carried | tuned | hid | sold | stole | fried | frightened | followed | counted
  | dropped | washed | juggled | licked | lost | mended | named | ate | offended | peeled
  | pinched | photographed | praised | punished | salted | sat on | sketched | sniffed
  | squeezed | stirred | sued | taught | thanked | unscrewed | voted for | weighed
  | whispered to | woke | wore | wrestled | baptised | boiled | bought | bribed | cheated
  | climbed | dug up | danced with | divorced | dreamt of | envied | fell into | feared | fed
  | folded | greeted | haunted | hugged | ironed | kept | kicked | loved | misled | milked
  | needed | outran | pardoned | proposed to | quoted | replaced | resembled | ruined | sang to
  | saw | slept in | smuggled | spoiled | tasted | tripped over | bit | cut | dyed | lit | met
  | led | rang | rode | shook | spun | swept | swung | tied | tore | threw | tugged | used
  | vexed | warmed | won | aimed at | built | drew | drank | held | heard | jilted | knew
  | nursed | owned | paid | pawned | pulled | rubbed | shaved | spied on | stung | trapped
  | underestimated | upset | wanted | wept for | yodelled at

do_to: insult | borrow | paint | marry | bury | tickle | arrest | butter | swallow | kiss
  | knit | polish | worship | forget | admire | blame | chase | carry | tune | hide | sell
  | steal | fry | follow | count | drop | wash | juggle | lick | lose | mend | eat | peel
  | pinch | praise | punish | salt | sit on | sniff | squeeze | stir | thank | vote for | weigh
  | wake | wear | boil | buy | bribe | climb | dance with | divorce | envy | fear | fold
  | greet | hug | iron | keep | kick | love | milk | pardon | replace | ruin | sing to
  | smuggle | spoil | taste | trust | upset | weep for

went: sneezed | fainted | sulked | pirouetted | melted | leaked | blinked | shrank | grew
  | exploded | snored | hatched | blushed | howled | limped | glowed | wobbled | vanished
  | yawned | floated | giggled | burned | hummed | stumbled | whistled | gossiped | escaped
  | froze | rusted | bounced | trembled | rhymed | sobbed | evaporated | resigned

how_so: at noon | at night | in church | by mistake | by post | on purpose | in public | at sea
  | on Monday | in June | for money | for love | for a bet | in secret | with gusto
  | upside down | twice | again | too soon | in tune | like a <noun_or_animal>
  | without a <noun> | in the <h.it> | near the <w.the> | all day

manner[x]: 6 <adverb> | 2 to a <noun> | 2 like a <animal> | 2 with a <noun> | 2 behind a <noun>
  | 2 in a <noun> | through a mouthful of <food> | <x.habit> | waving <x.his> <noun>
adverb: softly | loudly | darkly | sweetly | blushing | yawning | sternly | proudly | grandly
  | sadly | hopefully | faintly | bravely | crossly | drily | gravely | kindly | meekly | nobly
  | oddly | politely | quickly | rudely | shyly | smugly | tenderly | vaguely | wisely

food: porridge | soup | gravy | plum jam | toast | dumplings | custard | mushrooms | pickles
  | stew | fudge | lentils | mutton | honey | rhubarb | marmalade | beans | spinach | garlic
  | bacon | oatmeal | treacle | curry

body: nose | left knee | right knee | chin | elbow | head | shoulder | toe | tongue | ear
  | conscience | belly

relative: grandmother | uncle | cousin | husband | twin | landlady | nurse | godmother | aunt
  | dentist | wife | mother | papa | nephew | niece | stepson | lawyer | tailor

number: two | three | four | five | six | seven | eight | nine | ten | eleven | twelve | thirty
  | forty

table count: n | next | after
  two | three | four
  three | four | five
  four | five | six
  five | six | seven
  six | seven | eight
  seven | eight | nine
  eight | nine | ten
  nine | ten | eleven
  ten | eleven | twelve
  eleven | twelve | thirteen

price: 3 <number> <nouns> | half a <noun> | my <relative> | 2 a <thing> | one song

does: sneezes | faints | dances with a <np> | drops a <np> | falls into a <np> | bows to a <np>
  | hides a <np> | eats the <np> | salutes a <np> | weeps into a <np> | looks for a <np>
  | licks the <np> | turns <colour> | trips over a <np> | plays the <noun> | juggles <nouns>
  | nods to the <np> | opens a <np> | finds a <np> | whistles at a <np> | kisses the <np>
  | writes to a <np> | sits on a <np> | hums | borrows a <np> | marries a <np>
  | chases the <np> | peels a <np> | brings the <np> a <np>

colour: pink | red | green | pale | purple | blue | grey | yellow

condition: 2 <adj> | <doing>
doing: sneezing | sulking | dancing | melting | leaking | singing | shrinking | growing
  | ticking | snoring | hatching | blushing | howling | limping | glowing | plotting | wobbling
  | waiting for <food> | wearing a <noun> | telling lies | asking for <nouns>
  | learning to <skill> | hiding from a <animal>

skill: swim | waltz | yodel | read | juggle | speak <animal> | catch a <animal> | mend a <noun>
  | play the <noun> | say <noun> | fly | lie | cook <food> | count <nouns>
  | tell a <noun> from a <noun>

spot: in the <noun> | under the <noun> | behind the <noun> | on top of the <animal>
  | up the chimney | inside a <animal> | near my <noun> | next to a <noun>
  | between two <nouns> | at my <relative>'s house

proverb: a <thing> gathers no <noun> | two <nouns> do not make a <noun>
  | never <do_to> a <noun> at night | every <noun> <did_to> a <noun>
  | the <adj> <animal> <did_to> the <noun> | many <nouns> spoil the <food>
  | better a <noun> in the hand than a <animal> on the <body> | <do_to> before you <skill>
  | you can lead a <animal> to <food> | no <noun> is safe from a <animal> | still <nouns> run deep
)";

}  // namespace xgrad::data
