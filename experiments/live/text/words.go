package text

// openers begin the sentences of filler. Each is one piece in either position: at the start of a text and after a
// space.
const openers = "The This That Each Most Some Many Every Often Then Now Here There When While After Before Since If " +
	"As In On At By With For From Under Over We They You It One Two All Both Such No New Later"

// words fill the sentences of filler.
const words = "the of and to in is that for it as was with be by on not this but from or have an they which one you " +
	"were all her she there would their we him been has when who will no more if out so up said what its about than " +
	"into them can only other time new some could these two may first then do any like my now over such our man me " +
	"even most made after also did many off before must well back through years much where your way down should " +
	"because long each just state people those too mr little how make good still world being own see men work here " +
	"get both between life under never day same another know while last might us great old year since against go " +
	"came right used take three small place hand house water light night open table river stone green early train " +
	"letter window garden summer winter market paper story music street number simple order point north south field"
