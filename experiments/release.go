package experiments

import "clifftop/experiments/scenario"

// Version is the version of the program, which results carry.
const Version = scenario.Release
