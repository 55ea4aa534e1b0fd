package kv

import "planted/sim/part/drafts"

type Cache struct{ Drafts drafts.Drafts }
