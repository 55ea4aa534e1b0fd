package other

import n "planted/names"

var elsewhere = n.Elsewhere()
