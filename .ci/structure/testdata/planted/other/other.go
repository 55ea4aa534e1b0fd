package other

import "planted/names"

var used names.Used
